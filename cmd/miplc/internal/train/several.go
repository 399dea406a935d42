package train

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/miplc/miplc/cmd/miplc/internal/console"
	"github.com/miplc/miplc/internal/plain"
	"github.com/miplc/miplc/language"
	"github.com/miplc/miplc/runs"
)

// choice is one value of what the runs of one command differ in.
type choice struct {
	name string // its part of the name of a folder
	set  string // as --set takes it
}

// specs loads the spec once for each combination of split, seed and values of the
// grid. Without any the only name is empty.
func (o *options) specs() (list []*language.Spec, names []string, err error) {
	axes, err := o.axes()
	if err != nil {
		return nil, nil, err
	}
	for _, choices := range combinations(axes) {
		set, parts := o.sets(), make([]string, len(choices))
		for i, c := range choices {
			set, parts[i] = append(set, c.set), c.name
		}
		name := strings.Join(parts, "-")
		if slices.Contains(names, name) {
			return nil, nil, console.Usagef("miplc train: %s is asked for twice", name)
		}
		names = append(names, name)
		spec, err := language.Load(o.Spec, language.Options{Set: set})
		if err != nil {
			return nil, nil, console.Invalid(err)
		}
		list = append(list, spec)
	}
	return list, names, nil
}

// axes are the splits, the seeds and the values of each key of the grid.
func (o *options) axes() ([][]choice, error) {
	if len(o.Parts) > 0 {
		base, err := language.Load(o.Spec, language.Options{Set: o.sets()})
		if err != nil {
			return nil, console.Invalid(err)
		}
		if base.Data.Split.Index.V == "" {
			return nil, console.Usagef("miplc train: --parts numbers the splits of data.split.index, which the spec does not have")
		}
	}
	var axes [][]choice
	numbered := func(values []uint, name, key string) {
		var axis []choice
		for _, v := range values {
			axis = append(axis, choice{fmt.Sprintf("%s-%d", name, v), fmt.Sprintf("%s=%d", key, v)})
		}
		if len(axis) > 0 {
			axes = append(axes, axis)
		}
	}
	numbered(o.Parts, "part", "data.split.part")
	numbered(o.Seeds, "seed", "train.seed")
	for _, g := range o.Grid {
		key, values, ok := strings.Cut(g, "=")
		if !ok || key == "" || values == "" {
			return nil, console.Usagef("miplc train: --grid %s: write a key and its values, as in train.lr=0.01,0.05", g)
		}
		var axis []choice
		for v := range strings.SplitSeq(values, ",") {
			last := key[strings.LastIndexByte(key, '.')+1:]
			axis = append(axis, choice{fileName(last + "-" + v), key + "=" + v})
		}
		axes = append(axes, axis)
	}
	return axes, nil
}

// fileName keeps what every file system takes in a name.
func fileName(text string) string {
	return strings.Map(func(r rune) rune {
		if r == '-' || r == '.' || r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '_'
	}, text)
}

// combinations are all choices of one value from each axis, the last axis
// running fastest.
func combinations(axes [][]choice) [][]choice {
	list := [][]choice{nil}
	for _, axis := range axes {
		var next [][]choice
		for _, begun := range list {
			for _, c := range axis {
				next = append(next, append(slices.Clip(begun), c))
			}
		}
		list = next
	}
	return list
}

// printAll writes a line for each run, then mean and deviation.
func printAll(out io.Writer, dir string, trials int, t *runs.Results) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "\nrun\ttest accuracy\ttraining accuracy\tloss\n")
	share := func(v *float64) string {
		if v == nil {
			return "-"
		}
		return fmt.Sprintf("%.4f", *v)
	}
	for _, s := range t.Runs {
		plain.Fprintf(w, "%s\t%s\t%s\t%.4f\n", s.Folder, share(s.Accuracy), share(s.TrainAccuracy), s.Loss)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, text := range t.Failed {
		fmt.Fprintf(out, "failed: %s\n", text)
	}
	plain.Fprintf(out, "\n%d of %d runs on %s in %.1f s, in %s", len(t.Runs), trials, device(t.Runs[0]), t.Seconds, dir)
	if t.Mean != nil {
		fmt.Fprintf(out, "; test accuracy %.4f, deviation %.4f", *t.Mean, *t.Std)
	}
	_, err := fmt.Fprintln(out)
	return err
}
