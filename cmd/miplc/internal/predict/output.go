package predict

import (
	"cmp"
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/miplc/miplc/internal/sanitize"
)

func (r *result) printTable(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	if r.Parts != nil {
		fmt.Fprint(w, "part\t")
	}
	named := slices.ContainsFunc(r.Bags, func(b bag) bool { return b.Name != "" })
	if named {
		fmt.Fprint(w, "name\t")
	}
	fmt.Fprintln(w, "bag\tpredicted\tprobability\ttrue\thighest attention")
	indent := strings.Repeat("\t", 4)
	if r.Parts != nil {
		indent += "\t"
	}
	if named {
		indent += "\t"
	}
	for _, b := range r.Bags {
		if r.Parts != nil {
			fmt.Fprintf(w, "%s\t", b.Part)
		}
		if named {
			sanitize.Fprintf(w, "%s\t", b.Name)
		}
		sanitize.Fprintf(w, "%d\t%s\t%s\t%s\t%s\n", b.Number, b.predicted(), b.probabilities("%.4f"), r.truth(b), b.top())
		for _, list := range b.ClassTop {
			fmt.Fprint(w, indent)
			sanitize.Fprintf(w, "class %s: %s\n", list.Class, joined(list.Top))
		}
	}
	return w.Flush()
}

// top lists the instances with the highest attention.
func (b *bag) top() string {
	list := b.Top
	if list == nil {
		list = topOf(b.Attention, nil, 1)
	}
	return joined(list)
}

func joined(list []topInstance) string {
	texts := make([]string, len(list))
	for i, t := range list {
		texts[i] = t.String()
	}
	return strings.Join(texts, ", ")
}

// Number of instances up to which printBag lists all, and number that it lists of more.
const (
	maxListed = 100
	fewListed = 20
)

func (r *result) printBag(w io.Writer, b bag) {
	sanitize.Fprintf(w, "%s: %s", b.title(), b.predicted())
	if b.labels != nil {
		sanitize.Fprintf(w, " (true: %s)", r.truth(b))
	}
	if b.Part != "" {
		fmt.Fprintf(w, " (%s part of the split)", b.Part)
	}
	fmt.Fprintln(w, "\nprobabilities:")
	for c, p := range b.Probabilities {
		sanitize.Fprintf(w, "  %-12s %.6f\n", r.Classes[c], p)
	}
	if b.Top != nil {
		fmt.Fprintln(w, "highest attention:")
		for _, t := range b.Top {
			sanitize.Fprintf(w, "  %v\n", t)
		}
		for _, list := range b.ClassTop {
			sanitize.Fprintf(w, "highest attention of class %s:\n", list.Class)
			for _, t := range list.Top {
				sanitize.Fprintf(w, "  %v\n", t)
			}
		}
		return
	}
	if n := len(b.Attention); n > maxListed {
		fmt.Fprintf(w, "highest attention (%d of %d instances; --top N lists N of them, -o writes all to a CSV file):\n", fewListed, n)
		for _, t := range topOf(b.Attention, nil, fewListed) {
			sanitize.Fprintf(w, "  %v\n", t)
		}
		return
	}
	fmt.Fprintln(w, "attention of each instance:")
	for i, a := range b.Attention {
		fmt.Fprintf(w, "  %-12d %.6f\n", i+1, a)
	}
}

// none denotes an empty set of labels on the terminal.
const none = "(none)"

// title returns the number of the bag, and its name if it has one.
func (b *bag) title() string {
	if b.Name == "" {
		return "bag " + strconv.Itoa(b.Number)
	}
	return fmt.Sprintf("bag %d (%s)", b.Number, b.Name)
}

// predicted names the predicted classes.
func (b *bag) predicted() string {
	if b.Labels == nil {
		return b.Class
	}
	return cmp.Or(strings.Join(b.Classes, " "), none)
}

// probabilities writes the probabilities of the predicted classes; of the most probable class if
// no class is predicted.
func (b *bag) probabilities(format string) string {
	list := b.Predicted()
	if len(list) == 0 {
		list = []int{b.Label}
	}
	texts := make([]string, len(list))
	for i, c := range list {
		texts[i] = fmt.Sprintf(format, b.Probabilities[c])
	}
	return strings.Join(texts, " ")
}

// truth names the true classes.
func (r *result) truth(b bag) string {
	if b.labels == nil {
		return "-"
	}
	return cmp.Or(r.trueNames(b), none)
}

// trueNames returns the names of the true classes, separated by spaces.
func (r *result) trueNames(b bag) string {
	var names []string
	for c, in := range b.labels {
		if in == 1 {
			names = append(names, r.Classes[c])
		}
	}
	return strings.Join(names, " ")
}

// writeCSV writes one line per bag. Its column bag equals that of the data, so that tables can be joined by it.
// Numbers have enough digits to be read back as the same float32.
func (r *result) writeCSV(to io.Writer) error {
	w := csv.NewWriter(to)
	header := []string{"bag", "part", "true", "predicted"}
	for _, c := range r.Classes {
		header = append(header, "p("+c+")")
	}
	_ = w.Write(append(header, "attention")) // Error returns the error
	for _, b := range r.Bags {
		predicted := b.Class
		if b.Labels != nil {
			predicted = strings.Join(b.Classes, " ")
		}
		row := []string{cmp.Or(b.Name, strconv.Itoa(b.Number)), b.Part, r.trueNames(b), predicted}
		for _, p := range b.Probabilities {
			row = append(row, number(p))
		}
		scores := make([]string, len(b.Attention))
		for i, a := range b.Attention {
			scores[i] = number(a)
		}
		_ = w.Write(append(row, strings.Join(scores, " ")))
	}
	w.Flush()
	return w.Error()
}

func number(v float32) string { return strconv.FormatFloat(float64(v), 'g', -1, 32) }
