// Observers of a training.

package train

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/miplc/miplc/data"
	"github.com/miplc/miplc/data/measure"
)

// Observer receives the events of a training. Calls block the training. Trials that train at the
// same time call it concurrently; MergeObservers returns an observer for them.
type Observer interface {
	// Note reports work before the first epoch that may take long.
	Note(text string)
	// Begin is called before the first epoch of a trial or a group.
	Begin(Plan)
	// Step is called after every training step and every evaluated batch.
	Step(Progress)
	// Epoch is called after every epoch of a trial.
	Epoch(Metrics, Progress)
	// Warn reports a problem that does not stop the training.
	Warn(text string)
}

// Plan describes the trials that will be trained. Fields that are not about all trials describe
// the first one.
type Plan struct {
	Name       string // of the spec
	Trials     int
	Learner    string // kind of a fitted learner, whose iterations are the epochs; empty: a trained model
	Engine     string // empty: a learner without an engine
	Device     string // empty: the CPU
	Reason     string // why this engine was chosen; may be empty
	Epochs     int    // sum over all trials
	Done       int    // epochs in checkpoints of earlier calls, sum over the trials that begin
	TrainBags  int
	Validation int  // validation bags
	Unused     bool // no setting uses the validation bags
	TestBags   int
	Steps      int // steps of one epoch
	Parameters int // learned numbers
}

// planOf returns the plan of trials without engine and Done.
func planOf(trials []*Trial) Plan {
	first := trials[0]
	p := Plan{Name: first.Program.Spec.Name.V, Trials: len(trials), TrainBags: len(first.Split.Train),
		Validation: len(first.Split.Validation), TestBags: len(first.Split.Test),
		Unused: len(first.Split.Validation) > 0 && len(first.Program.Spec.ValidationUses()) == 0,
		Steps:  len(data.Batches(first.Split.Train, first.BatchSize())), Parameters: first.Program.FlatSize()}
	for _, t := range trials {
		p.Epochs += cmp.Or(t.Until, t.Program.Spec.Train.Epochs.V)
	}
	return p
}

// Progress is the progress of a trial.
type Progress struct {
	Trial      string // its name
	Epoch      int    // from 1
	Epochs     int
	Stopped    bool // by early stopping: no epoch follows
	Evaluating bool // Step counts batches of the evaluation, not training steps
	Step       int  // steps done in this epoch
	Steps      int
	Loss       float64       // mean over the bags of this epoch so far
	Accuracy   float64       // of the predictions of the steps of this epoch so far, if Labeled
	Labeled    bool          // whether a true label is known
	Left       time.Duration // estimate; 0: unknown
}

// Silent is an Observer that ignores all events. Embed it to implement only some methods.
type Silent struct{}

func (Silent) Note(string)             {}
func (Silent) Begin(Plan)              {}
func (Silent) Step(Progress)           {}
func (Silent) Epoch(Metrics, Progress) {}
func (Silent) Warn(string)             {}

// NotesOf returns an observer that passes only notes and warnings to o, which may be nil.
func NotesOf(o Observer) Observer {
	if o == nil {
		return Silent{}
	}
	return notesOnly{to: o}
}

type notesOnly struct {
	Silent
	to Observer
}

func (n notesOnly) Note(text string) { n.to.Note(text) }
func (n notesOnly) Warn(text string) { n.to.Warn(text) }

// MergeObservers returns an observer for several trials that train at the same time. It passes
// their events to o as those of a single training: an epoch is an epoch of any trial, and its
// metrics are means over the newest metrics of each trial.
func MergeObservers(o Observer, trials []*Trial) Observer {
	return &mergedObserver{to: o, plan: planOf(trials), began: time.Now(), latest: map[string]Metrics{}}
}

type mergedObserver struct {
	mu     sync.Mutex
	to     Observer
	plan   Plan // Done is the sum over the trials begun so far
	begun  bool // to.Begin was called
	began  time.Time
	did    int // number of epochs
	latest map[string]Metrics
}

func (t *mergedObserver) Begin(p Plan) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.plan.Done += p.Done
	if !t.begun {
		t.begun = true
		t.plan.Learner, t.plan.Engine, t.plan.Device, t.plan.Reason = p.Learner, p.Engine, p.Device, p.Reason
		t.to.Begin(t.plan)
	}
}

func (t *mergedObserver) Note(text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.to.Note(text)
}

func (t *mergedObserver) Warn(text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.to.Warn(text)
}

func (t *mergedObserver) Step(p Progress) {
	t.mu.Lock()
	defer t.mu.Unlock()
	p.Epoch, p.Epochs, p.Left = t.plan.Done+t.did+1, t.plan.Epochs, t.left()
	t.to.Step(p)
}

func (t *mergedObserver) Epoch(m Metrics, p Progress) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.did++
	t.latest[p.Trial] = m
	mean := Metrics{Epoch: t.plan.Done + t.did, Measures: Measures{}}
	var loss runningMean
	accuracies := map[string]*runningMean{data.TrainPart: {}, data.ValidationPart: {}, data.TestPart: {}}
	for _, name := range slices.Sorted(maps.Keys(t.latest)) {
		m := t.latest[name]
		loss.measure(&m.Loss)
		for part, c := range accuracies {
			c.measure(m.Measures.Accuracy(part))
		}
	}
	mean.Loss = *loss.share()
	for part, c := range accuracies {
		if v := c.share(); v != nil {
			mean.Measures[part] = measure.Values{measure.Accuracy: *v}
		}
	}
	t.to.Epoch(mean, Progress{Epoch: mean.Epoch, Epochs: t.plan.Epochs, Step: 1, Steps: 1, Loss: mean.Loss,
		Left: t.left()})
}

func (t *mergedObserver) left() time.Duration {
	return TimeLeft(t.began, t.did, t.plan.Epochs-t.plan.Done)
}

// TimeLeft estimates the remaining time of work that consists of total equal parts, done of which have been finished
// since began. It returns 0 if done is 0.
func TimeLeft(began time.Time, done, total int) time.Duration {
	if done == 0 {
		return 0
	}
	return time.Duration(float64(time.Since(began)) / float64(done) * float64(total-done))
}
