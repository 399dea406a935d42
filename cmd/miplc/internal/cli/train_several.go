// Several runs of one miplc train: seeds, splits and grids of settings, and how their results are printed.

package cli

import (
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/miplc/miplc/cmd/miplc/internal/console"
	"github.com/miplc/miplc/data/measure"
	"github.com/miplc/miplc/experiment/definition"
	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/language"
	"github.com/miplc/miplc/runs"
)

// maxRuns is the maximum number of runs of one command.
const maxRuns = 1000

// gridChoice is one value of a setting in which the runs of one command differ.
type gridChoice struct {
	name   string   // part of the name of the folder
	set    []string // arguments of --set
	repeat bool     // another seed or split of the same setting
}

// repeatKeys are the keys in which runs of one setting differ.
var repeatKeys = []string{"train.seed", "data.split.number", "data.split.fold", "data.split.seed",
	"data.generated.seed"}

// combinations loads the spec once for each combination of split, seed and values of the grid, and sets names. Without
// any of them it returns one spec, with an empty name.
func (o *trainOptions) combinations() (list []*language.Spec, err error) {
	choices, err := o.choices()
	if err != nil {
		return nil, err
	}
	if n := language.CountCombinations(choices, maxRuns); n > maxRuns {
		return nil, console.Usagef("miplc train: --seeds, --split-numbers, --grid and --setting give more than %d "+
			"runs, the limit of one command", maxRuns)
	}
	var errs diag.List
	for _, combination := range language.Combinations(choices) {
		set := slices.Clone(o.Set)
		var parts, setting []string
		for _, c := range combination {
			if set, parts = append(set, c.set...), append(parts, c.name); !c.repeat {
				setting = append(setting, c.name)
			}
		}
		name := runs.RunName{Name: strings.Join(parts, "-"), Setting: strings.Join(setting, "-")}
		if slices.ContainsFunc(o.names, func(had runs.RunName) bool { return had.Name == name.Name }) {
			return nil, console.Usagef("miplc train: two runs would have the name %s: give every value once", name.Name)
		}
		spec, err := language.Load(o.Spec, set...)
		list, o.names = append(list, spec), append(o.names, name)
		addNew(&errs, err)
		if len(errs) >= diag.MaxFound {
			break
		}
	}
	return list, o.invalid(errs.Err())
}

// addNew adds the errors of one more combination to those of others, which may have the same ones.
func addNew(errs *diag.List, err error) {
	var found diag.List
	found.AddError(diag.Pos{}, err)
	for _, d := range found {
		if !slices.ContainsFunc(*errs, func(had diag.Diagnostic) bool {
			return had.Text == d.Text && (had.Pos == d.Pos ||
				had.Pos.Setting != "" && d.Pos.Setting != "" && had.Pos.File == d.Pos.File)
		}) {
			errs.Add(d)
		}
	}
}

// load loads the spec with overrides.
func (o *trainOptions) load(set []string) (*language.Spec, error) {
	spec, err := language.Load(o.Spec, set...)
	return spec, o.invalid(err)
}

// invalid returns the failure for the errors of a spec, or nil.
func (o *trainOptions) invalid(err error) error {
	switch {
	case err == nil:
		return nil
	case definition.IsExperiment(o.Spec):
		return console.Usagef("miplc train: %s is an experiment: run miplc experiment %[1]s -o DIR", o.Spec)
	}
	return diag.Invalid(err)
}

// choices returns the values of each setting of --split-numbers, --seeds, --grid and --setting.
func (o *trainOptions) choices() (choices [][]gridChoice, err error) {
	var keys []flagKey
	if o.Place.Engine != "" {
		keys = append(keys, flagKey{flag: "--engine", key: "train.engine"})
	}
	if len(o.Splits) > 0 {
		base, err := o.load(o.Set)
		if err != nil {
			return nil, err
		}
		if base.Data.Split.Index.V == "" {
			return nil, console.Usagef("miplc train: --split-numbers selects splits of data.split.index, which the spec does " +
				"not have")
		}
	}
	for _, flag := range []struct {
		flagKey
		name   string
		values []uint
	}{{flagKey{flag: "--split-numbers", key: "data.split.number"}, "split", o.Splits},
		{flagKey{flag: "--seeds", key: "train.seed"}, "seed", o.Seeds}} {
		var axis []gridChoice
		for _, v := range flag.values {
			axis = append(axis, gridChoice{fmt.Sprintf("%s-%d", flag.name, v), []string{fmt.Sprintf("%s=%d", flag.key, v)},
				true})
		}
		if axis != nil {
			keys, choices = append(keys, flag.flagKey), append(choices, axis)
		}
	}
	for _, g := range o.Grid {
		key, values, ok := strings.Cut(g, "=")
		if !ok || key == "" || values == "" {
			return nil, console.Usagef("miplc train: --grid %s: write a key and its values, as in train.lr=0.01,0.05", g)
		}
		var axis []gridChoice
		for _, v := range splitValues(values) {
			last := key[strings.LastIndexByte(key, '.')+1:]
			axis = append(axis, gridChoice{notInFolderNames.ReplaceAllString(last+"-"+v, "_"), []string{key + "=" + v},
				slices.Contains(repeatKeys, key)})
		}
		keys, choices = append(keys, flagKey{flag: "--grid", key: key}), append(choices, axis)
	}
	var settings []gridChoice
	for i, text := range o.Settings {
		set := splitValues(text)
		settings = append(settings, gridChoice{fmt.Sprintf("setting-%d", i+1), set, false})
		for _, s := range set {
			key, _, _ := strings.Cut(s, "=")
			keys = append(keys, flagKey{"--setting", key, i + 1})
		}
	}
	if settings != nil {
		choices = append(choices, settings)
	}
	return choices, checkKeys(keys)
}

// splitValues splits the values of --grid or --setting at the commas outside of parentheses, brackets, braces and
// quoted text.
func splitValues(text string) (values []string) {
	depth, start := 0, 0
	quote, escaped, begins := rune(0), false, true // begins: a quote here begins a text, as after = or [
	for i, r := range text {
		switch {
		case escaped:
			escaped = false
		case quote != 0:
			if escaped = r == '\\' && quote == '"'; r == quote {
				quote = 0
			}
		case begins && (r == '"' || r == '\''):
			quote = r
		case strings.ContainsRune("([{", r):
			depth++
		case strings.ContainsRune(")]}", r):
			depth--
		case r == ',' && depth <= 0:
			values, start = append(values, text[start:i]), i+1
		}
		begins = strings.ContainsRune("=:,([{", r) || begins && r == ' '
	}
	return append(values, text[start:])
}

// flagKey is a key of the spec that a flag sets.
type flagKey struct {
	flag, key string
	setting   int // number of the --setting, from 1; 0: another flag
}

// checkKeys reports a setting with values from two flags: the later values would replace the earlier
// ones, and names of folders would contain values that do not apply.
func checkKeys(keys []flagKey) error {
	for i, a := range keys {
		for _, b := range keys[:i] {
			switch {
			case a.flag == b.flag && a.setting != b.setting: // of different runs
			case a == b && a.setting > 0:
				return console.Usagef("miplc train: --setting number %d gives %s twice: write one --setting for each value",
					a.setting, a.key)
			case a == b:
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

// notInFolderNames are characters that some file systems do not accept in names.
var notInFolderNames = regexp.MustCompile(`[^\w.-]`)

// printRuns writes a line for each run, with the measure of its validation bags if there are any.
func printRuns(out io.Writer, list []*runs.Summary) {
	by, validation := measure.Accuracy, ""
	if best := list[0].Best; best != nil {
		by = best.Measure
	}
	if slices.ContainsFunc(list, func(s *runs.Summary) bool { return s.Measures.Validation() != nil }) {
		validation = "validation " + by
	}
	rows := [][]string{{"run", validation, "test accuracy", "training accuracy", "loss"}}
	for _, s := range list {
		row := []string{s.Folder, "", console.Number(s.TestAccuracy), console.Number(s.TrainAccuracy),
			console.Number(&s.Loss)}
		if validation != "" {
			row[1] = console.Number(s.Measures.Validation().Get(by))
		}
		if s.Diverged != nil {
			row = append(row, s.Diverged.Verdict())
		}
		rows = append(rows, row)
	}
	fmt.Fprintln(out)
	console.Table(out, rows)
}

// printAll writes a line for each run, then the mean and the deviation of the accuracies of each setting.
func printAll(out io.Writer, o *trainOptions, trials int, t *runs.Results) {
	printRuns(out, t.Runs)
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
	several := len(t.Settings) > 1
	if one := t.Settings[0]; !several && one.Mean != nil {
		fmt.Fprintf(out, "; test accuracy %s, deviation %s", console.Number(one.Mean), console.Number(one.Std))
	}
	if t.Diverged > 0 {
		fmt.Fprintf(out, "\n%d of %s diverged or collapsed; means and deviations include them", t.Diverged,
			diag.Count(len(t.Runs), "run"))
	}
	fmt.Fprintln(out)
	if several && slices.ContainsFunc(t.Settings, func(s runs.SettingResults) bool { return s.Runs > 1 }) {
		rows := [][]string{{"setting", "runs", "test accuracy", "deviation"}}
		for _, s := range t.Settings {
			rows = append(rows, []string{s.Setting, fmt.Sprint(s.Runs), console.Number(s.Mean), console.Number(s.Std)})
		}
		fmt.Fprintln(out)
		console.Table(out, rows)
	}
	switch {
	case !several || len(o.Grid)+len(o.Settings) == 0:
	case t.Runs[0].Measures.Validation() != nil:
		fmt.Fprintln(out, "\nChoose a setting by the validation bags. If test bags choose it, its test accuracy is too high.")
	default:
		fmt.Fprintln(out, "\nDo not choose a setting by the test accuracy: that of the chosen setting would be too high. "+
			"Hold out validation bags with --set data.split.validation=0.2, or compare settings with grid in an experiment.")
	}
}
