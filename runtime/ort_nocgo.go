//go:build !cgo

package runtime

import "github.com/miplc/miplc/internal/onnxruntime"

func openORT(*File) (Session, error) { return nil, onnxruntime.ErrNoCgo }
