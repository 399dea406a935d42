// Predictions of miplc predict as text for people and as tables for other programs.

package cli

import (
	"cmp"
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/miplc/miplc/cmd/miplc/internal/console"
	"github.com/miplc/miplc/internal/diag"
)

// printTable writes a line per bag, and below it one per class if the model has an attention of each class.
func (r *predictResult) printTable(out io.Writer) {
	var rows [][]string
	name := ""
	for _, b := range r.Bags {
		if b.Name != "" {
			name = "name"
		}
		top := b.Top
		if top == nil {
			top = topOf(b.Attention, b.files, 1)
		}
		rows = append(rows, []string{b.Part, b.Name, strconv.Itoa(b.Number), b.predicted(), b.probabilities("%.4f"),
			r.truth(b), joinedNumbers(top)})
		for _, list := range b.ClassTop {
			rows = append(rows, []string{6: "class " + list.Class + ": " + joinedNumbers(list.Top)})
		}
	}
	part := ""
	if r.Parts != nil {
		part = "part"
	}
	console.Table(out, slices.Insert(rows, 0, []string{part, name, "bag", "predicted", "probability", "true",
		"highest attention"}))
}

func joinedNumbers(list []topInstance) string {
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

func (r *predictResult) printBag(w io.Writer, b bagResult) {
	diag.Fprintf(w, "%s: %s", b.title(), b.predicted())
	if b.labels != nil {
		diag.Fprintf(w, " (true: %s)", r.truth(b))
	}
	if b.Part != "" {
		fmt.Fprintf(w, " (%s part of the split)", b.Part)
	}
	fmt.Fprintln(w, "\nprobabilities:")
	for c, p := range b.Probabilities {
		diag.Fprintf(w, "  %-12s %.6f\n", r.Classes[c], p)
	}
	if n := len(b.Attention); b.Top == nil && n <= maxListed {
		fmt.Fprintln(w, "attention of each instance:")
		for i, a := range b.Attention {
			fmt.Fprintf(w, "  %-12d %.6f\n", i+1, a)
		}
		return
	} else if b.Top == nil {
		b.Top = topOf(b.Attention, b.files, fewListed)
		fmt.Fprintf(w, "highest attention (%d of %d instances; --top N lists N of them, -o writes all to a CSV file):\n",
			fewListed, n)
	} else {
		fmt.Fprintln(w, "highest attention:")
	}
	printTop(w, b.Top)
	for _, list := range b.ClassTop {
		diag.Fprintf(w, "highest attention of class %s:\n", list.Class)
		printTop(w, list.Top)
	}
}

func printTop(w io.Writer, list []topInstance) {
	for _, t := range list {
		diag.Fprintf(w, "  %s\n", t.String())
	}
}

// noValue denotes an empty set of labels on the terminal.
const noValue = "(none)"

// title returns the number of the bag, and its name if it has one.
func (b *bagResult) title() string {
	if b.Name == "" {
		return "bag " + strconv.Itoa(b.Number)
	}
	return fmt.Sprintf("bag %d (%s)", b.Number, b.Name)
}

// predicted names the predicted classes.
func (b *bagResult) predicted() string {
	if b.Labels == nil {
		return b.Class
	}
	return cmp.Or(strings.Join(b.Classes, " "), noValue)
}

// probabilities writes the probabilities of the predicted classes; of the most probable class if
// no class is predicted.
func (b *bagResult) probabilities(format string) string {
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
func (r *predictResult) truth(b bagResult) string {
	if b.labels == nil {
		return "-"
	}
	return cmp.Or(r.trueNames(b), noValue)
}

// trueNames returns the names of the true classes, separated by spaces.
func (r *predictResult) trueNames(b bagResult) string {
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
func (r *predictResult) writeCSV(to io.Writer) error {
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
			row = append(row, bagNumber(p))
		}
		scores := make([]string, len(b.Attention))
		for i, a := range b.Attention {
			scores[i] = bagNumber(a)
		}
		_ = w.Write(append(row, strings.Join(scores, " ")))
	}
	w.Flush()
	return w.Error()
}

func bagNumber(v float32) string { return strconv.FormatFloat(float64(v), 'g', -1, 32) }
