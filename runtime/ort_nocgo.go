//go:build !cgo

package runtime

import "github.com/miplc/miplc/runtime/ortenv"

func openORT(*File) (Session, error) { return nil, ortenv.ErrNoCgo }
