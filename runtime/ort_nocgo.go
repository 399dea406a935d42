//go:build !cgo

// Builds without cgo have no onnxruntime: opening a model with it says so.

package runtime

import "github.com/miplc/miplc/internal/onnxruntime"

func openORT(*File) (Session, error) { return nil, onnxruntime.ErrNoCgo }
