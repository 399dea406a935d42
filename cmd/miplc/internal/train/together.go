package train

import (
	"context"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/miplc/miplc/cmd/miplc/internal/backend"
	"github.com/miplc/miplc/cmd/miplc/internal/console"
	"github.com/miplc/miplc/language"
	"github.com/miplc/miplc/runs"
	"github.com/miplc/miplc/train/progress"
)

// together trains one run for each seed and split.
func (o *Options) together(ctx context.Context) error {
	if o.Resume {
		return console.Usagef("miplc train: runs side by side keep no checkpoints: leave --resume out")
	}
	variants, err := o.variants()
	if err != nil {
		return err
	}
	if err := backend.EnsureLibrary(ctx, o.Console, o.Library); err != nil {
		return err
	}
	options := o.options()
	if !o.Console.JSON {
		bar := progress.New(o.Console.Err, o.Console.Terminal)
		defer bar.Close()
		options.Observer = bar
	}
	result, err := runs.TrainTogether(ctx, options, variants)
	if err != nil {
		return o.explain(err)
	}
	return o.Console.Result(result, func(w io.Writer) error { return printTogether(w, o.Dir, variants, result) })
}

// choice is one value of what runs side by side differ in.
type choice struct {
	name string // its part of the name of a folder
	set  string // as --set takes it
}

// variants loads the spec once for each combination of split, seed and values of
// the grid.
func (o *Options) variants() ([]runs.Variant, error) {
	axes, err := o.axes()
	if err != nil {
		return nil, err
	}
	common := append([]string{}, o.Set...)
	if o.Engine != "" {
		common = append(common, "train.engine="+o.Engine)
	}
	var list []runs.Variant
	seen := map[string]bool{}
	for _, choices := range combinations(axes) {
		set, names := append([]string{}, common...), make([]string, len(choices))
		for i, c := range choices {
			set, names[i] = append(set, c.set), c.name
		}
		name := strings.Join(names, "-")
		if seen[name] {
			return nil, console.Usagef("miplc train: %s is asked for twice", name)
		}
		seen[name] = true
		spec, err := language.Load(o.Spec, language.Options{Set: set})
		if err != nil {
			return nil, console.Invalid(err)
		}
		list = append(list, runs.Variant{Name: name, Spec: spec})
	}
	return list, nil
}

// axes are the splits, the seeds and the values of each key of the grid.
func (o *Options) axes() ([][]choice, error) {
	base, err := o.load()
	if err != nil {
		return nil, err
	}
	if len(o.Parts) > 0 && base.Data.Split.Index.V == "" {
		return nil, console.Usagef("miplc train: --parts numbers the splits of data.split.index, which the spec does not have")
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
				next = append(next, append(begun[:len(begun):len(begun)], c))
			}
		}
		list = next
	}
	return list
}

// printTogether writes a line for each run, then mean and deviation.
func printTogether(out io.Writer, dir string, variants []runs.Variant, t *runs.Together) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "\nrun\ttest accuracy\ttraining accuracy\tloss\n")
	share := func(v *float64) string {
		if v == nil {
			return "-"
		}
		return fmt.Sprintf("%.4f", *v)
	}
	for _, s := range t.Runs {
		fmt.Fprintf(w, "%s\t%s\t%s\t%.4f\n", s.Folder, share(s.Accuracy), share(s.TrainAccuracy), s.Loss)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, text := range t.Failed {
		fmt.Fprintf(out, "failed: %s\n", text)
	}
	first := t.Runs[0]
	fmt.Fprintf(out, "\n%d of %d runs on %s in %.1f s, in %s", len(t.Runs), len(variants), device(first.Summary), t.Seconds, dir)
	if t.Mean != nil {
		fmt.Fprintf(out, "; test accuracy %.4f, deviation %.4f", *t.Mean, *t.Std)
	}
	_, err := fmt.Fprintln(out)
	return err
}
