// What the tests of this package need of the loop.

package train

// Stepwise returns the executor of one run on an engine.
func Stepwise(e Engine, r *Run) Executor { return newStepwise(e, r) }
