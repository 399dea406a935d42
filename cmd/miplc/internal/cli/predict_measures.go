// How good the predictions of miplc predict are, printed as measures, by class, and as a confusion matrix.

package cli

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/miplc/miplc/data/measure"
	"github.com/miplc/miplc/internal/diag"
)

// scoreRow judges the predictions of some bags.
type scoreRow struct {
	Known    int             `json:"known"`              // bags whose true label is known
	Accuracy *float64        `json:"accuracy,omitempty"` // share of them that are predicted right
	Measures measure.Values  `json:"measures,omitempty"` // without those that are not defined
	Detail   *measure.Detail `json:"detail,omitempty"`   // with --measures

	bags      measure.Predictions
	groups    *measure.Predictions // nil: the bags have no groups
	groupName string
}

// compute sets Accuracy, Measures and Detail to those of the bags.
func (s *scoreRow) compute(classes []string, groupName string, detail bool) {
	s.groups, s.groupName = s.bags.ByGroup(), groupName
	s.Measures = s.bags.Values()
	s.Accuracy = s.Measures.Get(measure.Accuracy)
	if detail && s.bags.Bags() > 0 {
		s.Detail = s.bags.Detail(classes)
	}
}

// measuresHeadline are the measures that are printed without --measures.
var measuresHeadline = []string{"balanced_accuracy", "macro_f1", "micro_f1", "mean_average_precision", "auroc",
	"hamming_loss", measure.LogLoss, measure.ECE}

// print writes the measures. part is the name of the part of the split with a space at the
// end, or empty.
func (s *scoreRow) print(w io.Writer, part string) {
	if s.Detail != nil {
		s.printDetail(w, part)
		return
	}
	if s.Accuracy == nil {
		if v := s.Measures.Get(measure.InsideCandidates); v != nil {
			fmt.Fprintf(w, "%s%s %.4f\n", part, measure.Find(measure.InsideCandidates).Title, *v)
		}
		return
	}
	fmt.Fprintf(w, "%saccuracy %.4f on %s whose true label is known\n", part, *s.Accuracy, diag.Count(s.Known, "bag"))
	var list []string
	for _, name := range measuresHeadline {
		if v := s.Measures.Get(name); v != nil {
			list = append(list, fmt.Sprintf("%s %.4f", measure.Find(name).Title, *v))
		}
	}
	fmt.Fprintf(w, "  %s\n", strings.Join(list, ", "))
	if v := s.Measures.Get(measure.GroupPrefix + measure.Accuracy); v != nil {
		diag.Fprintf(w, "  by %s: accuracy %.4f on %s whose true label is known\n", s.groupName, *v,
			diag.Count(s.groups.KnownBags(), "group"))
	}
}

// printDetail writes all measures, the table of classes, the confusion matrix and the
// reliability diagram as tables.
func (s *scoreRow) printDetail(out io.Writer, part string) {
	fmt.Fprintf(out, "\n%smeasures of %s, %d with a known true label:\n", part, diag.Count(s.bags.Bags(), "bag"), s.Known)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	multi := s.bags.Threshold > 0
	if s.groups != nil {
		diag.Fprintf(w, "  \tby bag\t\tby %s (%s, %d with a known true label)\n", s.groupName, diag.Count(s.groups.Bags(),
			"group"), s.groups.KnownBags())
	}
	for _, m := range measure.Table {
		if m.Group || !m.Fits(multi) {
			continue
		}
		more := ""
		if i := s.Detail.Accuracy; i != nil && m.Name == measure.Accuracy {
			more = fmt.Sprintf("\t95 %% interval %.4f to %.4f", i.Low, i.High)
		} else if s.groups != nil {
			more = "\t"
		}
		if s.groups != nil {
			more += "\t" + number4(s.Measures.Get(measure.GroupPrefix+m.Name))
		}
		fmt.Fprintf(w, "  %s\t%s%s\n", m.Title, number4(s.Measures.Get(m.Name)), more)
	}
	w.Flush()
	if s.Known == 0 {
		return
	}
	fmt.Fprint(w, "\n  class\tbags\tpredicted\tprecision\t95 %\trecall\t95 %\tF1\tAUROC")
	if multi {
		fmt.Fprint(w, "\taverage precision")
	}
	fmt.Fprintln(w)
	for _, c := range s.Detail.Classes {
		diag.Fprintf(w, "  %s\t%d\t%d\t%s\t%s\t%s\t%s\t%s\t%s", c.Name, c.Support, c.Predicted, number4(c.Precision),
			predictEnds(c.PrecisionInterval),
			number4(c.Recall), predictEnds(c.RecallInterval), number4(c.F1), number4(c.AUROC))
		if multi {
			fmt.Fprintf(w, "\t%s", number4(c.AveragePrecision))
		}
		fmt.Fprintln(w)
	}
	w.Flush()
	if s.Detail.Confusion != nil {
		s.printConfusion(w)
	}
	if s.Detail.Reliability == nil {
		return
	}
	fmt.Fprintf(w, "\n  probability of the predicted class\tbags\tmean probability\taccuracy\n")
	for _, b := range s.Detail.Reliability {
		if b.Bags > 0 {
			fmt.Fprintf(w, "  %.2f to %.2f\t%d\t%s\t%s\n", b.Low, b.High, b.Bags, number4(b.Confidence), number4(b.Accuracy))
		}
	}
	w.Flush()
}

// mostColumns bounds the confusion matrix on a terminal; --json has it at any size.
const mostColumns = 20

func (s *scoreRow) printConfusion(w *tabwriter.Writer) {
	if len(s.Detail.Classes) > mostColumns {
		fmt.Fprintf(w, "\n  the confusion matrix of %d classes is printed with --json\n", len(s.Detail.Classes))
		w.Flush()
		return
	}
	fmt.Fprint(w, "\n  true class, predicted as")
	for _, c := range s.Detail.Classes {
		diag.Fprintf(w, "\t%s", c.Name)
	}
	fmt.Fprintln(w)
	for i, row := range s.Detail.Confusion {
		diag.Fprintf(w, "  %s", s.Detail.Classes[i].Name)
		for _, n := range row {
			fmt.Fprintf(w, "\t%d", n)
		}
		fmt.Fprintln(w)
	}
	w.Flush()
}

// number4 writes a measure with four decimals, or a dash if it is not defined.
func number4(v *float64) string {
	if v == nil {
		return "–"
	}
	return fmt.Sprintf("%.4f", *v)
}

// predictEnds writes the ends of an interval.
func predictEnds(i *measure.Interval) string {
	if i == nil {
		return "–"
	}
	return fmt.Sprintf("%.2f–%.2f", i.Low, i.High)
}
