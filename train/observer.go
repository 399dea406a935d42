package train

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/miplc/miplc/data"
	"github.com/miplc/miplc/measure"
)

// Observer follows a training. A slow observer slows the training. Trials that are under
// way at a time call it at the same time: Together is for those.
type Observer interface {
	// Note tells what takes its time before the first epoch.
	Note(text string)
	// Begin comes before the first epoch, for a trial alone or for trials that go
	// in step.
	Begin(Plan)
	// Step comes after every training step and every evaluated batch.
	Step(Progress)
	// Epoch comes after every finished epoch of a trial.
	Epoch(Metrics, Progress)
	// Warn tells of something unusual that training went on in spite of.
	Warn(text string)
}

// Plan says what is going to be trained. What is not said of all trials is that of
// the first one.
type Plan struct {
	Name       string // of the spec
	Trials     int
	Learner    string // fitted in place of a model that is trained: Epochs are its iterations
	Engine     string // empty: a learner that takes none
	Device     string // empty: the CPU
	Reason     string // of the choice of the engine; may be empty
	Epochs     int    // of all trials, T of one
	Done       int    // epochs that checkpoints brought, of all trials that begin
	TrainBags  int
	Validation int // validation bags
	TestBags   int
	Steps      int // steps of one epoch
	Parameters int // learned numbers
}

// planOf is the plan of trials but for what trains them and what is done.
func planOf(trials []*Trial) Plan {
	first := trials[0]
	p := Plan{Name: first.Program.Spec.Name.V, Trials: len(trials), TrainBags: len(first.Split.Train), Validation: len(first.Split.Validation), TestBags: len(first.Split.Test),
		Steps: len(data.Batches(first.Split.Train, first.Batch())), Parameters: first.Program.FlatSize()}
	for _, t := range trials {
		p.Epochs += cmp.Or(t.Until, t.epochs())
	}
	return p
}

// Progress says where a trial stands.
type Progress struct {
	Trial      string // its name
	Epoch      int    // from 1
	Epochs     int
	Stopped    bool // by early stopping: no epoch follows
	Evaluating bool // Step counts batches of the evaluation, not training steps
	Step       int  // steps done in this epoch
	Steps      int
	Loss       float64  // mean over the bags of this epoch so far
	Accuracy   *float64 // of the predictions made in the steps so far; nil if no true label is known
	Left       time.Duration
}

// Silent is the observer of a training that has none, and the part of others that
// look at little.
type Silent struct{}

func (Silent) Note(string)             {}
func (Silent) Begin(Plan)              {}
func (Silent) Step(Progress)           {}
func (Silent) Epoch(Metrics, Progress) {}
func (Silent) Warn(string)             {}

// MergeObservers returns one observer for several trials that train at the same time.
// It passes their events on to o, which follows a single training: an epoch is an epoch
// of any trial, and its numbers are means over the newest of all trials.
func MergeObservers(o Observer, trials []*Trial) Observer {
	return &together{to: o, plan: planOf(trials), began: time.Now(), latest: map[string]Metrics{}}
}

type together struct {
	mu     sync.Mutex
	to     Observer
	plan   Plan // Done is that of the trials begun so far
	told   bool
	began  time.Time
	did    int // epochs
	latest map[string]Metrics
}

func (t *together) Begin(p Plan) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.plan.Done += p.Done
	if !t.told {
		t.told = true
		t.plan.Learner, t.plan.Engine, t.plan.Device, t.plan.Reason = p.Learner, p.Engine, p.Device, p.Reason
		t.to.Begin(t.plan)
	}
}

func (t *together) Note(text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.to.Note(text)
}

func (t *together) Warn(text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.to.Warn(text)
}

func (t *together) Step(p Progress) {
	t.mu.Lock()
	defer t.mu.Unlock()
	p.Epoch, p.Epochs, p.Left = t.plan.Done+t.did+1, t.plan.Epochs, t.left()
	t.to.Step(p)
}

func (t *together) Epoch(m Metrics, p Progress) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.did++
	t.latest[p.Trial] = m
	mean := Metrics{Epoch: t.plan.Done + t.did}
	var loss, trained, validated, tested counter
	for _, name := range slices.Sorted(maps.Keys(t.latest)) {
		m := t.latest[name]
		loss.measure(&m.Loss)
		trained.measure(m.TrainAccuracy)
		validated.measure(m.Measures.accuracy(data.ValidationPart))
		tested.measure(m.TestAccuracy)
	}
	mean.Loss, mean.TrainAccuracy, mean.TestAccuracy = *loss.share(), trained.share(), tested.share()
	if v := validated.share(); v != nil {
		mean.Measures = Measures{data.ValidationPart: {measure.Accuracy: *v}}
	}
	t.to.Epoch(mean, Progress{Epoch: mean.Epoch, Epochs: t.plan.Epochs, Step: 1, Steps: 1, Loss: mean.Loss, Left: t.left()})
}

func (t *together) left() time.Duration { return TimeLeft(t.began, t.did, t.plan.Epochs-t.plan.Done) }

// TimeLeft estimates how long the rest takes of what is equal in length, when so many
// of all are done since a training began; 0 before the first.
func TimeLeft(began time.Time, did, all int) time.Duration {
	if did == 0 {
		return 0
	}
	return time.Duration(float64(time.Since(began)) / float64(did) * float64(all-did))
}
