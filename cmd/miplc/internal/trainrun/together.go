package trainrun

import (
	"context"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/miplc/miplc/cmd/miplc/internal/backend"
	"github.com/miplc/miplc/cmd/miplc/internal/console"
	"github.com/miplc/miplc/runs"
	"github.com/miplc/miplc/specs"
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

// variants loads the spec once for each pair of split and seed.
func (o *Options) variants() ([]runs.Variant, error) {
	base, err := o.load()
	if err != nil {
		return nil, err
	}
	seeds, parts := o.Seeds, o.Parts
	if len(seeds) == 0 {
		seeds = []uint{uint(base.Train.Seed.V)}
	}
	if len(parts) == 0 {
		parts = []uint{uint(base.Data.Split.Part.V)}
	}
	if len(o.Parts) > 0 && base.Data.Split.Index.V == "" {
		return nil, console.Usagef("miplc train: --parts numbers the splits of data.split.index, which the spec does not have")
	}
	var list []runs.Variant
	seen := map[string]bool{}
	for _, part := range parts {
		for _, seed := range seeds {
			set := append([]string{}, o.Set...)
			if o.Engine != "" {
				set = append(set, "train.engine="+o.Engine)
			}
			var name []string
			if len(o.Parts) > 0 {
				set, name = append(set, fmt.Sprintf("data.split.part=%d", part)), append(name, fmt.Sprintf("part-%d", part))
			}
			if len(o.Seeds) > 0 {
				set, name = append(set, fmt.Sprintf("train.seed=%d", seed)), append(name, fmt.Sprintf("seed-%d", seed))
			}
			spec, err := specs.Load(o.Spec, specs.Options{Set: set})
			if err != nil {
				return nil, console.Invalid(err)
			}
			v := runs.Variant{Name: strings.Join(name, "-"), Spec: spec}
			if seen[v.Name] {
				return nil, console.Usagef("miplc train: %s is asked for twice", v.Name)
			}
			seen[v.Name] = true
			list = append(list, v)
		}
	}
	return list, nil
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
