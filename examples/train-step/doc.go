// Package trainstep trains with the training step of miplc build from Python and from a
// browser. Its test runs the Python part.
package trainstep
