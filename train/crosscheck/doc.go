// Package crosscheck has no code of its own: its tests run the engines of
// miplc side by side (the float64 interpreter, gorgonia, onnxruntime, XLA's
// builder on the pure Go executor) and hold gradients, training steps and whole
// trainings of one to those of the others.
package crosscheck
