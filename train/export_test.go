// What the tests of this package need of the loop.

package train

// Stepwise returns the executor of one run on an engine.
func Stepwise(e Engine, r *Run) Executor { return newStepwise(e, r) }

// FirstStepsNormalized returns FirstSteps with a limit of the number of values that are normalised once.
func FirstStepsNormalized(t *Trial, steps, most int) (*State, []*Batch, error) {
	return firstSteps(t, steps, most)
}
