// Measures of miplc predict: all measures, by class, and a confusion matrix.

package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/miplc/miplc/cmd/miplc/internal/console"
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

// compute sets Known, Accuracy, Measures and Detail to those of the bags.
func (s *scoreRow) compute(classes []string, groupName string, detail bool) {
	s.Known = s.bags.KnownBags()
	s.groups, s.groupName = s.bags.ByGroup(), groupName
	s.Measures = s.bags.Values()
	s.Accuracy = s.Measures.Get(measure.Accuracy)
	if detail && s.bags.Bags() > 0 {
		s.Detail = s.bags.Detail(classes)
	}
}

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
	for _, m := range measure.Table {
		if v := s.Measures.Get(m.Name); v != nil && m.InPredict && !m.Group {
			list = append(list, fmt.Sprintf("%s %.4f", m.Title, *v))
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
func (s *scoreRow) printDetail(w io.Writer, part string) {
	fmt.Fprintf(w, "\n%smeasures of %s, %d with a known true label:\n", part, diag.Count(s.bags.Bags(), "bag"), s.Known)
	multi := s.bags.Threshold > 0
	var rows [][]string
	if s.groups != nil {
		rows = [][]string{{"  ", "by bag", "", fmt.Sprintf("by %s (%s, %d with a known true label)", s.groupName,
			diag.Count(s.groups.Bags(), "group"), s.groups.KnownBags())}}
	}
	for _, m := range measure.Table {
		if m.Group || !m.Fits(multi) {
			continue
		}
		row := []string{"  " + m.Title, console.Number(s.Measures.Get(m.Name)), "", ""}
		if i := s.Detail.Accuracy; i != nil && m.Name == measure.Accuracy {
			row[2] = fmt.Sprintf("95 %% interval %.4f to %.4f", i.Low, i.High)
		}
		if s.groups != nil {
			row[3] = console.Number(s.Measures.Get(measure.GroupPrefix + m.Name))
		}
		rows = append(rows, row)
	}
	console.Table(w, rows)
	if s.Known == 0 {
		return
	}
	s.printClasses(w, multi)
	if s.Detail.Confusion != nil {
		s.printConfusion(w)
	}
	if s.Detail.Reliability == nil {
		return
	}
	rows = [][]string{{"  probability of the predicted class", "bags", "mean probability", "accuracy"}}
	for _, b := range s.Detail.Reliability {
		if b.Bags > 0 {
			rows = append(rows, []string{fmt.Sprintf("  %.2f to %.2f", b.Low, b.High), fmt.Sprint(b.Bags),
				console.Number(b.Confidence), console.Number(b.Accuracy)})
		}
	}
	fmt.Fprintln(w)
	console.Table(w, rows)
}

func (s *scoreRow) printClasses(w io.Writer, multi bool) {
	interval := func(i *measure.ConfidenceInterval) string {
		if i == nil {
			return console.Number(nil)
		}
		return fmt.Sprintf("%.2f–%.2f", i.Low, i.High)
	}
	rows := [][]string{{"  class", "bags", "predicted", "precision", "95 %", "recall", "95 %", "F1", "AUROC"}}
	if multi {
		rows[0] = append(rows[0], "average precision")
	}
	for _, c := range s.Detail.Classes {
		row := []string{"  " + c.Name, fmt.Sprint(c.Support), fmt.Sprint(c.Predicted), console.Number(c.Precision),
			interval(c.PrecisionInterval), console.Number(c.Recall), interval(c.RecallInterval), console.Number(c.F1),
			console.Number(c.AUROC)}
		if multi {
			row = append(row, console.Number(c.AveragePrecision))
		}
		rows = append(rows, row)
	}
	fmt.Fprintln(w)
	console.Table(w, rows)
}

// mostColumns bounds the confusion matrix on a terminal; --json has it at any size.
const mostColumns = 20

func (s *scoreRow) printConfusion(w io.Writer) {
	if len(s.Detail.Classes) > mostColumns {
		fmt.Fprintf(w, "\n  the confusion matrix of %d classes is printed with --json\n", len(s.Detail.Classes))
		return
	}
	rows := [][]string{{"  true class, predicted as"}}
	for i, counts := range s.Detail.Confusion {
		rows[0] = append(rows[0], s.Detail.Classes[i].Name)
		row := []string{"  " + s.Detail.Classes[i].Name}
		for _, n := range counts {
			row = append(row, fmt.Sprint(n))
		}
		rows = append(rows, row)
	}
	fmt.Fprintln(w)
	console.Table(w, rows)
}
