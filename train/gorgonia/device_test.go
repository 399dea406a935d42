package gorgonia_test

import (
	"testing"

	"github.com/miplc/miplc/learners/devicetest"
	"github.com/miplc/miplc/train/gorgonia"
)

func TestDevice(t *testing.T) { devicetest.Run(t, gorgonia.Device{}) }
