// Package runtimes compares the model files of miplc in other ONNX runtimes. Its test runs
// those that are installed.
package runtimes
