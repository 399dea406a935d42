//go:build !cgo

package runs

import (
	"errors"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/train"
)

func newORT(*compile.Program, string) (train.Engine, error) {
	return nil, errors.New("engine ort needs cgo: this miplc was built with CGO_ENABLED=0; use --engine gorgonia")
}
