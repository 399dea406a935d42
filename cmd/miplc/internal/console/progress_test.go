// The progress of a training is readable and true, on a terminal and in a file.

package console

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/miplc/miplc/train"
)

// run plays three epochs of two steps, each step taking the given time.
func run(terminal bool, step time.Duration) string {
	var out bytes.Buffer
	r := NewReporter(&out, terminal)
	now := time.Unix(0, 0)
	r.now = func() time.Time { return now }
	r.Begin(train.Plan{Name: "demipl", Engine: "gorgonia", Epochs: 3, TrainBags: 20, TestBags: 9, Steps: 2,
		Parameters: 77})
	r.Warn("something odd")
	for epoch := 1; epoch <= 3; epoch++ {
		for i := 1; i <= 2; i++ {
			now = now.Add(step)
			r.Step(train.Progress{Epoch: epoch, Epochs: 3, Step: i, Steps: 2, Loss: 1.5, Left: 200 * time.Second})
		}
		m := train.Metrics{Epoch: epoch, Loss: 1.25}
		if epoch != 2 {
			m.Measures = train.Measures{"train": {"accuracy": 0.5}, "test": {"accuracy": 0.25}}
		}
		r.Epoch(m, train.Progress{Epoch: epoch, Epochs: 3, Step: 2, Steps: 2, Loss: m.Loss, Left: 100 * time.Second})
	}
	r.End()
	return out.String()
}

func TestPlainLines(t *testing.T) {
	head := "training demipl with engine gorgonia: 20 bags (9 for testing), 3 epochs of 2 steps, 77 " +
		"parameters\nwarning: something odd\n"
	first := "epoch 1/3  loss 1.2500  train 0.500  test 0.250  1m40s left\n"
	second := "epoch 2/3  loss 1.2500  train 0.500  test 0.250  1m40s left\n"
	third := "epoch 3/3  loss 1.2500  train 0.500  test 0.250\n"
	if got, want := run(false, time.Millisecond), head+first+third; got != want {
		t.Errorf("fast run:\n%s\nwant\n%s", got, want)
	}
	if got, want := run(false, 6*time.Second), head+first+second+third; got != want {
		t.Errorf("slow run:\n%s\nwant\n%s", got, want)
	}
}

// Control characters in names and paths do not reach the terminal.
func TestControlCharacters(t *testing.T) {
	var out bytes.Buffer
	r := NewReporter(&out, true)
	name := "a\x1b[2Jb\u202ec"
	r.Begin(train.Plan{Name: name, Engine: "native", Reason: name})
	r.Note(name)
	r.Warn(name)
	NewLine(&out, true).Show(name)
	if strings.ContainsAny(out.String(), "\x1b\u202e") {
		t.Errorf("control characters reach the terminal: %q", out.String())
	}
}

func TestBar(t *testing.T) {
	out := run(true, time.Second)
	for _, want := range []string{
		"\r████░░░░░░░░░░░░░░░░░░░░  17%  epoch 1/3  loss 1.5000  3m20s left",
		"\r████████████████████████ 100%  epoch 3/3  loss 1.2500  train 0.500  test 0.250",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is missing in %q", want, out)
		}
	}
	if !strings.HasSuffix(out, "\n") || strings.Count(out, "\n") != 3 {
		t.Errorf("the bar should end its line once: %q", out)
	}
	// The bar is not redrawn for every fast step.
	if fast := run(true, time.Millisecond); strings.Count(fast, "\r") != 3 {
		t.Errorf("%d bars drawn in a run of 6 ms", strings.Count(fast, "\r"))
	}
}

// Device and reason of the choice are written if they are known.
func TestEngine(t *testing.T) {
	var out bytes.Buffer
	NewReporter(&out, false).Begin(train.Plan{Name: "demipl", Engine: "native", Device: "cpu", Reason: "it is fast",
		Epochs: 1})
	want := "engine native on cpu: it is fast\ntraining demipl with engine native on cpu: "
	if got := out.String(); !strings.HasPrefix(got, want) {
		t.Errorf("%q does not start with %q", got, want)
	}
}

// The text for several different runs is true for all of them.
func TestSeveralRuns(t *testing.T) {
	var out bytes.Buffer
	r := NewReporter(&out, false)
	r.Begin(train.Plan{Name: "demipl", Trials: 2, Engine: "native", Epochs: 3, Done: 1, TrainBags: 20, TestBags: 9,
		Steps:      2,
		Parameters: 77})
	r.Begin(train.Plan{Name: "graph", Trials: 2, Learner: "pl-aggd", Epochs: 3, TrainBags: 20, TestBags: 9})
	want := "training 2 runs of demipl with engine native: 3 epochs in all; the first has 20 bags (9 for testing), " +
		"epochs of 2 steps, 77 parameters\n" +
		"resuming from checkpoints\n" +
		"fitting 2 runs of graph with learner pl-aggd: 3 iterations in all; the first has 20 bags (9 for testing)\n"
	if out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
}

// A shorter line erases the rest of a longer one.
func TestBarWipes(t *testing.T) {
	var out bytes.Buffer
	r := NewReporter(&out, true)
	r.bar(train.Progress{Epoch: 1, Epochs: 2, Step: 1, Steps: 2, Loss: 1, Left: time.Hour})
	long := len([]rune(strings.TrimPrefix(out.String(), "\r")))
	out.Reset()
	r.bar(train.Progress{Epoch: 1, Epochs: 2, Step: 2, Steps: 2, Loss: 1})
	if got := len([]rune(strings.TrimPrefix(out.String(), "\r"))); got != long {
		t.Errorf("second bar covers %d characters, the first had %d", got, long)
	}
}

func TestDuration(t *testing.T) {
	for d, want := range map[time.Duration]string{
		900 * time.Millisecond: "1s", 59 * time.Second: "59s", 200 * time.Second: "3m20s", 125 * time.Minute: "2h05m",
	} {
		if got := FormatDuration(d); got != want {
			t.Errorf("%v: %s, want %s", d, got, want)
		}
	}
}

// A learner has no engine, no steps and no epochs.
func TestLearner(t *testing.T) {
	var out bytes.Buffer
	r := NewReporter(&out, false)
	r.Begin(train.Plan{Name: "graph", Learner: "pl-aggd", Epochs: 1, TrainBags: 20, TestBags: 9})
	r.Epoch(train.Metrics{Epoch: 1, Loss: 2}, train.Progress{Epoch: 1, Epochs: 1, Step: 1, Steps: 1, Loss: 2})
	r.End()
	want := "fitting graph with learner pl-aggd: 20 bags (9 for testing), 1 iteration\niteration 1/1  loss 2.0000\n"
	if out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
}
