package train

import "time"

// Observer follows a run. Calls come from the goroutine of Run, one at a time;
// a slow observer slows the training.
type Observer interface {
	// Begin comes once, before the first epoch of this run.
	Begin(Plan)
	// Step comes after every training step and every evaluated batch.
	Step(Progress)
	// Epoch comes after every finished epoch.
	Epoch(Metrics, Progress)
	// Warn tells of something unusual that training went on in spite of.
	Warn(text string)
}

// Plan says what a run is going to do.
type Plan struct {
	Name       string // of the spec
	Learner    string // fitted in place of a model that is trained: no Engine and Steps, Epochs are its iterations
	Engine     string
	Device     string // empty: the CPU
	Reason     string // of the choice of the engine; may be empty
	Epochs     int    // T
	Done       int    // epochs that a checkpoint brought
	TrainBags  int
	TestBags   int
	Steps      int // steps of one epoch
	Parameters int // learned numbers
}

// Progress says where a run stands.
type Progress struct {
	Epoch      int // from 1
	Epochs     int
	Evaluating bool // Step counts batches of the evaluation, not training steps
	Step       int  // steps done in this epoch
	Steps      int
	Loss       float64  // mean over the bags of this epoch so far
	Accuracy   *float64 // of the predictions made in the steps so far; nil if no true label is known
	Left       time.Duration
}

// silent is the observer of a run that has none.
type silent struct{}

func (silent) Begin(Plan)              {}
func (silent) Step(Progress)           {}
func (silent) Epoch(Metrics, Progress) {}
func (silent) Warn(string)             {}

// clock estimates the time left from the training steps done since Run began;
// evaluations are spread over them.
type clock struct {
	begin time.Time
	did   int // steps of this run so far
	todo  int // steps of this run in all
	steps int // of an epoch
}

func startClock(t *trainer, steps int) clock {
	return clock{begin: time.Now(), todo: (t.Epochs - t.done) * steps, steps: steps}
}

func (c *clock) tick() { c.did++ }

func (c *clock) left() time.Duration {
	if c.did == 0 {
		return 0
	}
	return time.Duration(float64(time.Since(c.begin)) / float64(c.did) * float64(c.todo-c.did))
}
