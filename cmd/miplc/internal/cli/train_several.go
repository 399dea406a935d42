// Several runs of one miplc train: seeds, splits and grids of settings, and how their results are printed.

package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/miplc/miplc/cmd/miplc/internal/console"
	"github.com/miplc/miplc/data/measure"
	"github.com/miplc/miplc/experiment/definition"
	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/language"
	"github.com/miplc/miplc/runs"
)

// maxRuns is the maximum number of runs of one command.
const maxRuns = 1000

// gridChoice is one value of an axis.
type gridChoice struct {
	name string   // part of the name of the folder
	set  []string // arguments of --set
}

// gridAxis is a setting in which the runs of one command differ, with its values.
type gridAxis struct {
	flag    string // of the command, for messages
	key     string
	choices []gridChoice
}

// specs loads the spec once for each combination of split, seed and values of the grid. Without any
// of them it returns one spec with an empty name.
func (o *trainOptions) specs() (list []*language.Spec, names []string, err error) {
	axes, err := o.axes()
	if err != nil {
		return nil, nil, err
	}
	choices := make([][]gridChoice, len(axes))
	for i, a := range axes {
		choices[i] = a.choices
	}
	if n := language.CountCombinations(choices, maxRuns); n > maxRuns {
		return nil, nil, console.Usagef("miplc train: --seeds, --split-numbers, --grid and --setting give more than %d "+
			"runs, the limit of one command", maxRuns)
	}
	for _, combination := range language.Combinations(choices) {
		set, parts := o.sets(), make([]string, len(combination))
		for i, c := range combination {
			set, parts[i] = append(set, c.set...), c.name
		}
		name := strings.Join(parts, "-")
		if slices.Contains(names, name) {
			return nil, nil, console.Usagef("miplc train: two runs would have the name %s: give every value once", name)
		}
		spec, err := language.Load(o.Spec, set...)
		if err != nil && definition.IsExperiment(o.Spec) {
			return nil, nil, console.Usagef("miplc train: %s is an experiment: run miplc experiment %[1]s -o DIR", o.Spec)
		}
		if err != nil {
			return nil, nil, console.Invalid(err)
		}
		list, names = append(list, spec), append(names, name)
	}
	return list, names, nil
}

// axes returns the axes of --split-numbers, --seeds and --grid.
func (o *trainOptions) axes() (axes []gridAxis, err error) {
	if len(o.Splits) > 0 {
		base, err := language.Load(o.Spec, o.sets()...)
		if err != nil {
			return nil, console.Invalid(err)
		}
		if base.Data.Split.Index.V == "" {
			return nil, console.Usagef("miplc train: --split-numbers selects splits of data.split.index, which the spec does " +
				"not have")
		}
		axes = append(axes, numberedAxis("--split-numbers", "split", "data.split.number", o.Splits))
	}
	if len(o.Seeds) > 0 {
		axes = append(axes, numberedAxis("--seeds", "seed", "train.seed", o.Seeds))
	}
	for _, g := range o.Grid {
		key, values, ok := strings.Cut(g, "=")
		if !ok || key == "" || values == "" {
			return nil, console.Usagef("miplc train: --grid %s: write a key and its values, as in train.lr=0.01,0.05", g)
		}
		a := gridAxis{flag: "--grid", key: key}
		for _, v := range splitValues(values) {
			last := key[strings.LastIndexByte(key, '.')+1:]
			a.choices = append(a.choices, gridChoice{fileName(last + "-" + v), []string{key + "=" + v}})
		}
		axes = append(axes, a)
	}
	if err := o.checkKeys(append(slices.Clone(axes), o.settingKeys()...)); err != nil || len(o.Settings) == 0 {
		return axes, err
	}
	all := gridAxis{flag: "--setting"}
	for i, text := range o.Settings {
		all.choices = append(all.choices, gridChoice{fmt.Sprintf("setting-%d", i+1), splitValues(text)})
	}
	return append(axes, all), nil
}

// settingKeys returns an axis without choices for each key of --setting.
func (o *trainOptions) settingKeys() (axes []gridAxis) {
	known := map[string]bool{}
	for _, text := range o.Settings {
		for _, s := range splitValues(text) {
			if key, _, _ := strings.Cut(s, "="); !known[key] {
				known[key] = true
				axes = append(axes, gridAxis{flag: "--setting", key: key})
			}
		}
	}
	return axes
}

// splitValues splits the values of --grid or --setting at the commas outside of parentheses, brackets and braces.
func splitValues(text string) (values []string) {
	depth, start := 0, 0
	for i, r := range text {
		switch r {
		case '(', '[', '{':
			depth++
		case ')', ']', '}':
			depth--
		case ',':
			if depth <= 0 {
				values, start = append(values, text[start:i]), i+1
			}
		}
	}
	return append(values, text[start:])
}

// numberedAxis returns the axis of a flag that lists numbers.
func numberedAxis(flag, name, key string, values []uint) gridAxis {
	a := gridAxis{flag: flag, key: key}
	for _, v := range values {
		a.choices = append(a.choices, gridChoice{fmt.Sprintf("%s-%d", name, v), []string{fmt.Sprintf("%s=%d", key, v)}})
	}
	return a
}

// checkKeys reports a setting with values from two flags: the later values would replace the earlier
// ones, and names of folders would contain values that do not apply.
func (o *trainOptions) checkKeys(axes []gridAxis) error {
	if o.specEngine != "" {
		axes = append([]gridAxis{{flag: "--engine", key: "train.engine"}}, axes...)
	}
	for i, a := range axes {
		for _, b := range axes[:i] {
			switch {
			case a.flag == "--setting" && a.flag == b.flag: // of different runs
			case a.key == b.key && a.flag == b.flag:
				return console.Usagef("miplc train: %s %s is given twice: list all values in one, as in %s=1,2", a.flag, a.key,
					a.key)
			case a.key == b.key, strings.HasPrefix(a.key, b.key+"."), strings.HasPrefix(b.key, a.key+"."):
				return console.Usagef("miplc train: %s sets %s and %s sets %s: the same setting cannot have values from both",
					b.flag, b.key, a.flag, a.key)
			}
		}
	}
	return nil
}

// fileName replaces characters that some file systems do not accept in names.
func fileName(text string) string {
	return strings.Map(func(r rune) rune {
		if r == '-' || r == '.' || r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '_'
	}, text)
}

// printRuns writes a line for each run, with the measure of its validation bags if there are any.
func printRuns(out io.Writer, list []*runs.Summary) error {
	validated := slices.ContainsFunc(list, func(s *runs.Summary) bool { return s.Measures.Validation() != nil })
	by := measure.Accuracy
	if best := list[0].Best; best != nil {
		by = best.Measure
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	head := ""
	if validated {
		head = "validation " + by + "\t"
	}
	fmt.Fprintf(w, "\nrun\t%stest accuracy\ttraining accuracy\tloss\n", head)
	for _, s := range list {
		diag.Fprintf(w, "%s\t", s.Folder)
		if validated {
			fmt.Fprintf(w, "%s\t", shareOfBags(s.Measures.Validation().Get(by)))
		}
		fmt.Fprintf(w, "%s\t%s\t%.4f", shareOfBags(s.TestAccuracy), shareOfBags(s.TrainAccuracy), s.Loss)
		if s.Diverged != nil {
			fmt.Fprintf(w, "\t%s", s.Diverged.Verdict())
		}
		fmt.Fprintln(w)
	}
	return w.Flush()
}

// adviceForGrid says by which bags to choose a setting.
func adviceForGrid(list []*runs.Summary) string {
	if list[0].Measures.Validation() != nil {
		return "Choose a setting by the validation bags. If test bags choose it, its test accuracy is too high."
	}
	return "Do not choose a setting by the test accuracy: that of the chosen setting would be too high. Hold out " +
		"validation bags with " +
		"--set data.split.validation=0.2, or compare settings with grid in an experiment."
}

// printAll writes a line for each run, then the mean and the deviation of the accuracies of each setting.
func printAll(out io.Writer, o *trainOptions, trials int, t *runs.Results) error {
	if err := printRuns(out, t.Runs); err != nil {
		return err
	}
	for _, s := range t.Runs {
		if s.Diverged != nil {
			diag.Fprintf(out, "%s: %s\n", s.Folder, s.Diverged)
		}
	}
	for _, text := range t.Failures {
		fmt.Fprintf(out, "failed: %s\n", text)
	}
	diag.Fprintf(out, "\n%d of %s on %s in %.1f s, in %s", len(t.Runs), diag.Count(trials, "run"), deviceLabel(t.Runs[0]),
		t.Seconds, o.Dir)
	if one := t.Settings[0]; len(t.Settings) == 1 && one.Mean != nil {
		fmt.Fprintf(out, "; test accuracy %s, deviation %s", shareOfBags(one.Mean), shareOfBags(one.Std))
	}
	if t.Diverged > 0 {
		fmt.Fprintf(out, "\n%d of %s diverged or collapsed; means and deviations include them", t.Diverged,
			diag.Count(len(t.Runs), "run"))
	}
	if _, err := fmt.Fprintln(out); err != nil {
		return err
	}
	if err := printSettings(out, t.Settings); err != nil || len(o.Grid)+len(o.Settings) == 0 || len(t.Settings) == 1 {
		return err
	}
	_, err := fmt.Fprintf(out, "\n%s\n", adviceForGrid(t.Runs))
	return err
}

// printSettings writes the mean accuracy of each setting, if there are several with several runs.
func printSettings(out io.Writer, list []runs.SettingResults) error {
	if len(list) == 1 || !slices.ContainsFunc(list, func(s runs.SettingResults) bool { return s.Runs > 1 }) {
		return nil
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "\nsetting\truns\ttest accuracy\tdeviation\n")
	for _, s := range list {
		diag.Fprintf(w, "%s\t%d\t%s\t%s\n", s.Setting, s.Runs, shareOfBags(s.Mean), shareOfBags(s.Std))
	}
	return w.Flush()
}

// shareOfBags formats a share with four digits, or a missing one as a dash.
func shareOfBags(v *float64) string {
	if v == nil {
		return "-"
	}
	return fmt.Sprintf("%.4f", *v)
}
