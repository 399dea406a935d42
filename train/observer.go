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
	Engine     string
	Epochs     int // T
	Done       int // epochs that a checkpoint brought
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
