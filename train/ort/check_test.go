//go:build cgo

package ort

import (
	"errors"
	"testing"

	"github.com/miplc/miplc/internal/testsupport"
	"github.com/miplc/miplc/runtime/ortenv"
	"github.com/miplc/miplc/runtime/ortlib"
	"github.com/miplc/miplc/runtime/ortlib/ortest"
	"github.com/miplc/miplc/train/traintest"
)

// An engine on the CPU with the step of another program stands in for a device that
// computes wrong numbers.
func TestWrongDeviceIsRefused(t *testing.T) {
	for bags, at := range map[int]func(*Engine) **session{1: (*Engine).atOneBag, 3: (*Engine).atManyBags} {
		e, wrong := onCPU(t), onCPU(t, "train.momentum=0.5")
		if err := errors.Join(opened(e, bags), opened(wrong, bags)); err != nil {
			t.Fatal(err)
		}
		e.options.Provider = ortlib.WebGPU // for the error; the sessions are open
		if err := e.checkStep(bags); err != nil {
			t.Errorf("%d bags: a right device is refused: %v", bags, err)
		}
		*at(e), *at(wrong) = *at(wrong), *at(e)
		var refused *ortenv.WrongDeviceError
		if err := e.checkStep(bags); !errors.As(err, &refused) {
			t.Errorf("%d bags: a wrong device gives %v", bags, err)
		} else {
			t.Log(err)
		}
	}
}

func (e *Engine) atOneBag() **session   { return &e.oneBag }
func (e *Engine) atManyBags() **session { return &e.manyBags }

func opened(e *Engine, bags int) error {
	_, err := e.wholeStep(bags)
	return err
}

func onCPU(t *testing.T, set ...string) *Engine {
	t.Helper()
	e, err := New(traintest.Shipped(t, "quickstart", set...), nil, Options{Library: ortest.Library(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	return e
}

// The steps of shipped specs agree with the CPU's on WebGPU. A session whose inputs are not
// bound again does not.
func TestStepsOnWebGPU(t *testing.T) {
	if testsupport.InProcess(t, ortest.WebGPU) {
		stepsOn(t, ortlib.WebGPU)
	}
}

// OpenVINO's CPU device has memory of its own.
func TestStepsOnOpenVINO(t *testing.T) {
	if testsupport.InProcess(t, testsupport.OpenVINO) {
		stepsOn(t, "openvino")
	}
}

func stepsOn(t *testing.T, provider string) {
	for _, c := range []struct {
		name string
		set  []string
	}{{"quickstart", nil}, {"demipl", []string{"train.batch=16"}}} {
		e, err := New(traintest.Shipped(t, c.name, c.set...), nil, Options{Library: ortest.Library(t), Provider: provider})
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		for bags, s := range map[int]*session{1: e.oneBag, 16: e.manyBags} {
			if s == nil {
				continue
			}
			s.onCPU = true // binds once
			var refused *ortenv.WrongDeviceError
			if err := e.checkStep(bags); !errors.As(err, &refused) {
				t.Errorf("%s: a session that does not bind its inputs again gives %v", c.name, err)
			} else {
				t.Logf("%s, bound once: %v", c.name, err)
			}
		}
		e.Close()
	}
}
