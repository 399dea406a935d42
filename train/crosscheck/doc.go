// Package crosscheck contains only tests. They compare gradients, training steps and whole
// trainings of all engines: the float64 interpreter, gorgonia, onnxruntime, and XLA's builder on
// the pure Go executor.
package crosscheck
