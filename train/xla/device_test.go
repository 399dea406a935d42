package xla_test

import (
	"testing"

	"github.com/miplc/miplc/learners/devicetest"
)

func TestDevice(t *testing.T) { devicetest.Run(t, goBackend(t)) }
