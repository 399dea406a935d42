// The command miplc train.

package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/miplc/miplc/cmd/miplc/internal/console"
	"github.com/miplc/miplc/data"
	"github.com/miplc/miplc/data/measure"
	"github.com/miplc/miplc/internal/contract"
	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/language"
	"github.com/miplc/miplc/runs"
	"github.com/miplc/miplc/runs/prepare"
	"github.com/miplc/miplc/train"
	"github.com/miplc/miplc/train/xla/pjrt"
)

// trainOptions are the options of the command.
type trainOptions struct {
	Console *console.Console
	Spec    string // empty with Resume: the spec in Dir
	Set     []string
	Library string // onnxruntime library; empty: search
	runs.Task
	// Seeds, Splits and Grid select several runs.
	Seeds  []uint
	Splits []uint
	Grid   []string
	// Settings are those of one run each.
	Settings []string
	Events   bool
	// Search searches for the settings of the run, with Trials (0: those of the spec) within Budget (0: no limit).
	Search bool
	Trials int
	Budget time.Duration
	plan   *runs.SearchPlan // of the search: that of Spec, or the one to resume in Dir

	names []runs.RunName // of all runs without a search
}

// trainCommand returns the command.
func trainCommand(con *console.Console) *cobra.Command {
	o := &trainOptions{Console: con}
	cmd := &cobra.Command{
		Use:        "train SPEC -o DIR",
		SuggestFor: []string{"fit", "learn", "run", "start"},
		Short:      "Train a model and write a checked ONNX file, metrics and plots",
		Long: `Train the model of a spec: the path of a YAML file or the name of a shipped spec (miplc
specs). --set data.set=bags.csv trains on your dataset. By default 30 % of the bags are test
bags; --set data.split.train=1 trains on all bags. The command prints the accuracy on the test
bags, compares the predictions of all back ends, and writes to DIR:

  model.onnx               the model
  spec.yaml                the complete spec, with all defaults
  metrics.jsonl, plots/    the metrics of every epoch, and figures
  summary.json             the final metrics
  split.json               the training and test bags
  checkpoint.miplc         the state of the training, for --resume

An invalid spec or dataset is an error, and nothing is written. The model file
lists the back ends (onnxruntime, onnx-go) that agree with the reference implementation. If
none agrees, the model is saved as model.failed.onnx and the command fails.

Engines: native runs training steps in miplc's own kernels on the CPU, xla on an NVIDIA GPU,
gorgonia slowly in pure Go, as a check. auto, the default, selects xla for images if an NVIDIA
GPU is usable, else native. The command prints the choice and the reason; --device cpu selects
the CPU. miplc doctor shows what works on this machine.

--seeds, --split-numbers, --grid and --setting train up to 1000 runs with one command, each in
its own folder below DIR (seed-1, split-2-seed-1-lr-0.05, setting-1, ...). With native, each
core trains a run on features; runs on images, or on bags that stay on disk, train one after
the other, on all cores. With xla, runs that differ only in seed, split, learning rate and loss
weights train together.

--search tries random settings from the section search of the spec, stops bad trials early, and
trains the best setting on all training bags. DIR/search then has the trials and two figures.
The test bags do not influence the choice: docs/search.md.

Ctrl-C stops with exit code 75 and prints the last epoch in the checkpoint. --resume repeats
the later epochs, on the engine and device of the run; the result is bit-identical to that
without an interruption. Without SPEC, --resume -o DIR continues the run in DIR, or
all runs of the last command that trained several runs there. A finished run is overwritten
only with --force.

If no onnxruntime library is found, the command downloads it into the cache of miplc.`,
		Example: `  miplc train quickstart -o quickstart-run
  miplc train demipl-mlp --set data.set=bags.csv -o my-run
  miplc train my.yaml -o my-run
  miplc train demipl-image -o run --data-dir data --set train.epochs=10 --set train.seed=3
  miplc train birdsong.yaml -o cuda-run --device cuda
  miplc train demipl -o table --device cuda --seeds 1,2,3 --grid train.lr=0.01,0.05 --grid loss.attention=0,0.001
  miplc train demipl-mlp --search --budget 5m --set data.set=bags.csv -o best
  miplc train --resume -o run`,
		Args: console.Args(console.Arg("[SPEC]", &o.Spec)),
		RunE: func(cmd *cobra.Command, _ []string) error { return runTrain(cmd.Context(), o) },
	}
	o.flags(cmd)
	return cmd
}

// flags declares the flags of the command.
func (o *trainOptions) flags(cmd *cobra.Command) {
	console.OutputFlag(cmd, &o.Dir, "DIR", "folder of the run")
	checkOutput := cmd.PreRunE
	cmd.PreRunE = func(cmd *cobra.Command, args []string) error {
		if o.Dir == "" && len(args) == 0 {
			return console.Usagef("miplc train: SPEC and -o DIR are missing, as in miplc train quickstart -o run; miplc specs " +
				"lists the shipped specs")
		}
		return checkOutput(cmd, args)
	}
	f := cmd.Flags()
	f.StringArrayVar(&o.Set, "set", nil, "override of a value of the spec, e.g. train.epochs=5 (repeatable)")
	placeFlags(o.Console, f, &o.Place, "engine to train with, the same as --set train.engine=")
	console.LibraryFlag(f, &o.Library)
	f.IntVar(&o.Place.Threads, "threads", 0,
		"number of threads of an operation of the engine native (default: all cores)")
	f.StringVar(&o.Place.Plugin, "pjrt-plugin", "", "path of the PJRT plugin for the engine xla (default: "+pjrt.EnvPlugin+
		", or an installed one)")
	console.DataFlags(o.Console, f, &o.Data, "folder in which datasets are searched (default: $MIPLC_DATA)")
	f.UintSliceVar(&o.Seeds, "seeds", nil, "seeds, one run for each")
	f.UintSliceVar(&o.Splits, "split-numbers", nil, "numbers of splits of data.split.index, one run for each")
	f.StringArrayVar(&o.Grid, "grid", nil, "key and values, one run for each, e.g. train.lr=0.01,0.05 (repeatable: all "+
		"combinations)")
	f.StringArrayVar(&o.Settings, "setting", nil, "keys and values of one run, e.g. train.lr=0.01,loss.attention=0.1 "+
		"(repeatable: one run each)")
	f.BoolVar(&o.Search, "search", false, "search for the settings in the section search of the spec, and train the best "+
		"ones")
	f.IntVar(&o.Trials, "trials", 0, "number of trials of --search (default: search.trials of the spec, or 64)")
	f.DurationVar(&o.Budget, "budget", 0, "time after which --search trains no further trials, e.g. 5m (default: "+
		"no limit)")
	console.EventsFlag(f, &o.Events)
	f.BoolVar(&o.Resume, "resume", false, "continue the interrupted runs in DIR; SPEC is optional")
	f.BoolVar(&o.Force, "force", false, "start again: delete what an earlier run or build wrote to DIR; other files "+
		"remain")
	console.Limit(f, 0, 1024, "threads")
	console.Limit(f, 1, language.MaxGrid, "trials")
	console.Limit(f, 0, console.Most, "seeds")
	console.Limit(f, 1, console.Most, "split-numbers")
}

// runTrain trains and prints the results.
func runTrain(ctx context.Context, o *trainOptions) error {
	if err := o.complete(); err != nil {
		return err
	}
	o.Console.SayIfInterrupted(fmt.Sprintf("interrupted before the training: %s is as it was; run the command again",
		o.Dir))
	specs, err := o.resumed()
	if err == nil && specs == nil {
		specs, err = o.specs()
	}
	if err != nil {
		return err
	}
	if err := ensureLibrary(ctx, o.Console, o.Library, false); err != nil {
		return err
	}
	count := o.Console.Counter("images encoded")
	trials, err := prepare.Trials(specs, o.Data, prepare.EncodeWith(ctx, count.Progress))
	count.End()
	if err != nil {
		return console.WrongData(err)
	}
	o.Console.AllowAfterSignal(console.LastEpochs, console.ExitInterrupted)
	o.Console.SayIfInterrupted(fmt.Sprintf("interrupted: if %s has a checkpoint, miplc train --resume -o %[1]s "+
		"continues, else run the command again", o.Dir))
	if o.Search {
		return o.search(ctx, trials)
	}
	return o.train(ctx, trials)
}

// specs returns the specs of all trials of Spec. It sets plan for a search, else names.
func (o *trainOptions) specs() ([]*language.Spec, error) {
	if o.Search {
		return o.searchSpecs()
	}
	return o.combinations()
}

// resumed returns the specs of the search or of the several runs in Dir, unless there is a Spec. If Dir has one run, it
// sets Spec to that of the run.
func (o *trainOptions) resumed() ([]*language.Spec, error) {
	if o.Spec != "" {
		return nil, nil
	}
	o.Console.AllowAfterSignal(0, console.ExitInterrupted) // the same command continues
	found, err := runs.FindResumable(o.Dir)
	missing := errors.Is(err, fs.ErrNotExist)
	switch {
	case o.Search && found.Search == nil && (err == nil || missing):
		return nil, fmt.Errorf("there is no search in %s to resume: start one with miplc train SPEC --search -o %[1]s", o.Dir)
	case missing:
		return nil, fmt.Errorf("there is no run in %s to resume: start one with miplc train SPEC -o %[1]s", o.Dir)
	case err != nil:
		return nil, err
	case found.Search != nil && (o.Trials > 0 || len(o.Set) > 0):
		return nil, console.Usagef("miplc train: --trials and --set need SPEC: the search in %s continues with its own "+
			"trials", o.Dir)
	case found.Search != nil:
		o.Search, o.plan = true, found.Search
		return found.Search.Specs, nil
	case len(found.Specs) > 0 && len(o.Set) > 0:
		return nil, console.Usagef("miplc train: --set needs SPEC: the runs in %s continue with their own specs", o.Dir)
	}
	o.Spec, o.names = found.Spec, found.Names
	return found.Specs, nil
}

// train trains trials, which are runs, and prints the results.
func (o *trainOptions) train(ctx context.Context, trials []*train.Trial) error {
	for i, name := range o.names {
		trials[i].Name, trials[i].Setting = name.Name, name.Setting
	}
	switch {
	case o.Events:
		o.Observer = console.NewEvents(o.Console)
	case !o.Console.JSON:
		bar := console.NewReporter(o.Console.Err, o.Console.Terminal)
		defer bar.End()
		o.Observer = bar
	}
	results, err := runs.Train(ctx, trials, o.Task)
	if err != nil {
		return o.explain(err)
	}
	if o.names[0].Name == "" {
		return o.Console.Result(results.Runs[0], func(w io.Writer) { printSummary(w, o.Dir, results.Runs[0]) })
	}
	if n := len(results.Failures); n > 0 {
		err = fmt.Errorf("%d of %s failed", n, diag.Count(len(trials), "run"))
	}
	return o.Console.ResultOf(err, results, func(w io.Writer) { printAll(w, o, len(trials), results) })
}

// complete reports flags that are missing or exclude each other, and adds the engine to the overrides of Spec.
func (o *trainOptions) complete() error {
	single := len(o.Seeds)+len(o.Splits)+len(o.Grid)+len(o.Settings) == 0
	switch {
	case o.Resume && o.Force:
		return console.Usagef("miplc train: --resume continues a run and --force starts it again: give only one of them")
	case !o.Search && (o.Trials > 0 || o.Budget > 0):
		return console.Usagef("miplc train: --trials and --budget are for --search")
	case o.Budget < 0:
		return console.Usagef("miplc train: --budget %v is negative", o.Budget)
	case o.Search && !single:
		return console.Usagef("miplc train: --search trains one run: omit --seeds, --split-numbers, --grid and --setting, " +
			"and set ranges with --set, as in --set 'search.grid.train.lr={log: [0.001, 0.1]}'")
	case o.Spec == "" && !o.Resume:
		return console.Usagef("miplc train: SPEC is missing; miplc specs lists the shipped ones")
	case o.Spec == "" && !single:
		return console.Usagef("miplc train: SPEC is missing: --seeds, --split-numbers, --grid and --setting need it; " +
			"--resume without SPEC continues the runs that DIR lists")
	}
	if o.Spec != "" && o.Place.Engine != "" { // the spec of a resumed run must not change
		o.Set = append(o.Set, "train.engine="+o.Place.Engine)
	}
	return nil
}

// explain adds the command that continues.
func (o *trainOptions) explain(err error) error {
	if stopped := (*runs.InterruptedError)(nil); errors.As(err, &stopped) && stopped.Resumable {
		return console.Interrupted(fmt.Errorf("%w\ncontinue with: miplc train --resume -o %s", err, o.Dir))
	}
	return err
}

// seconds returns a time with the digits that matter: 0.047 s, 2.4 s.
func seconds(s float64) string {
	if s < 1 {
		return fmt.Sprintf("%.2g s", s)
	}
	return fmt.Sprintf("%.1f s", s)
}

// deviceLabel returns the name of the device that trained a run.
func deviceLabel(s *runs.Summary) string { return cmp.Or(s.DeviceName, s.Device) }

// summaryTable is the final table of a run.
type summaryTable [][]string

func (t *summaryTable) row(name, format string, args ...any) {
	*t = append(*t, []string{name, fmt.Sprintf(format, args...)})
}

// share adds a share if it is known.
func (t *summaryTable) share(name string, v *float64, of string) {
	if v != nil {
		t.row(name, "%.4f %s", *v, of)
	}
}

// printSummary writes the final table and the parity table.
func printSummary(out io.Writer, dir string, s *runs.Summary) {
	var t summaryTable
	t.addTraining(dir, s)
	t.addResults(s)
	fmt.Fprintln(out)
	console.Table(out, t)
	printFindings(out, s)
	fmt.Fprintln(out)
	printParity(out, s.Parity)
}

// addTraining adds the model, its data and its training.
func (t *summaryTable) addTraining(dir string, s *runs.Summary) {
	t.row("model", "%s (%s, %s)", filepath.Join(dir, runs.ModelFile), s.Name, diag.Count(s.Parameters, "parameter"))
	t.row("data", "%s, %s, split %s", s.Data.Name, diag.Count(s.Data.Bags, "bag"), s.Split.Source)
	if s.Data.Outside > 0 {
		t.row("noisy candidates", "the true label of %s is outside of the candidates", diag.Count(s.Data.Outside, "bag"))
	}
	if s.Learner != "" {
		on := ""
		if s.EngineReason != "" {
			on = " on " + deviceLabel(s)
		}
		t.row("learner", "%s%s, %d iterations in %s, seed %d", s.Learner, on, s.Epochs, seconds(s.Seconds), s.Seed)
	} else {
		t.row("engine", "%s on %s, %s in %s, seed %d", s.Engine, deviceLabel(s), diag.Count(s.Epochs, "epoch"),
			seconds(s.Seconds), s.Seed)
	}
	if b := s.Best; b != nil {
		text := fmt.Sprintf("epoch %d of %d: validation %s %.4f", b.Epoch, b.Trained, b.Measure, b.Value)
		if b.Refit {
			text += fmt.Sprintf("; trained again on %s", diag.Count(s.Split.Trained(), "bag"))
		}
		t.row("best", "%s", text)
	}
}

// addResults adds the accuracies and other measures.
func (t *summaryTable) addResults(s *runs.Summary) {
	mark := ""
	if s.Diverged != nil {
		mark = fmt.Sprintf(" (the training %s)", strings.ToLower(s.Diverged.Verdict()))
	}
	t.share("test accuracy", s.TestAccuracy, printMeasures(s, data.TestPart, s.Split.TestBags)+mark)
	if s.TestAccuracy == nil {
		t.share("inside candidates", s.Measures.Test().Get(measure.InsideCandidates),
			"of the predictions for test bags, whose true labels are unknown")
	}
	if s.Baseline != nil {
		t.row("baseline", "%.4f logistic regression on the mean, maximum and minimum of the instances",
			s.Baseline.TestAccuracy)
	}
	t.share("validation accuracy", s.ValidationAccuracy, printMeasures(s, data.ValidationPart, s.Split.Validation)+mark)
	t.share("training accuracy", s.TrainAccuracy, printMeasures(s, data.TrainPart, s.Split.Trained())+mark)
	if s.Detail != nil && s.Detail.Confusion == nil { // bags have several labels
		for _, m := range measure.Table {
			if m.InTrain && !m.Group {
				t.share(s.DetailOf+" "+m.Title, s.Measures[s.DetailOf].Get(m.Name), "(of labels)")
			}
		}
	}
	ofGroups := measure.GroupPrefix + measure.Accuracy
	t.share(s.DetailOf+" "+measure.Find(ofGroups).Title, s.Measures[s.DetailOf].Get(ofGroups),
		"(mean probabilities of the bags of a group)")
	t.share("true labels found", s.Disambiguation, "of the training bags")
	if s.Temperature != nil {
		t.row("temperature", "%s", describeTemperature(s))
	}
	t.row("loss", "%.4f", s.Loss)
	if by := s.Environment.MeasuredBy; by != contract.BackendORT {
		t.row("measured by", "%s, without onnxruntime", by)
	}
}

// printFindings prints the findings of a run. A training that diverged or collapsed comes first.
func printFindings(out io.Writer, s *runs.Summary) {
	for i, f := range s.Findings {
		if i == 0 {
			fmt.Fprintln(out, "\nfindings:")
		}
		mark := f.Name
		if s.Diverged != nil && i == 0 {
			mark = s.Diverged.Verdict()
		}
		diag.Fprintf(out, "  %s: %s\n", mark, f.Text)
		if f.Advice != "" {
			diag.Fprintf(out, "      %s\n", f.Advice)
		}
	}
}

// printMeasures describes the bags of a part whose accuracy is printed: those with a true label.
func printMeasures(s *runs.Summary, part string, bags int) string {
	known, ok := s.KnownLabels[part]
	if !ok || known == bags {
		return "of " + diag.Count(bags, "bag")
	}
	return fmt.Sprintf("of %s (%d more without a true label)", diag.Count(known, "bag"), bags-known)
}

// describeTemperature describes the effect of the temperature on the test bags, or on the validation
// bags if there are no test bags.
func describeTemperature(s *runs.Summary) string {
	text := fmt.Sprintf("%.4f", s.Temperature.Value)
	if n := s.Temperature.FittedTo; n > 0 {
		to := ""
		if s.Temperature.Candidates {
			to = "the candidates of "
		}
		text += fmt.Sprintf(", fitted to %s%s", to, diag.Count(n, "validation bag"))
	}
	for _, part := range []string{data.TestPart, data.ValidationPart} {
		before, after := s.Temperature.Before[part], s.Measures[part]
		if before.Get(measure.ECE) == nil {
			continue
		}
		return text + fmt.Sprintf("; %s bags: log loss %.4f, was %.4f; ECE %.4f, was %.4f", part,
			after[measure.LogLoss], before[measure.LogLoss], after[measure.ECE], before[measure.ECE])
	}
	return text
}
