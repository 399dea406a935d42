// Programs are kept, and groups fit into the memory.

package xla_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"

	"github.com/miplc/miplc/internal/resources"
	"github.com/miplc/miplc/internal/testkit/enginetest"
	"github.com/miplc/miplc/internal/testkit/modeltest"
	"github.com/miplc/miplc/train"
	"github.com/miplc/miplc/train/xla"
	"github.com/miplc/miplc/train/xla/pjrt"
)

// notes records the notes before the first epoch, and the number of trials in each group.
type notes struct {
	train.Silent
	said, warned []string
	trials       []int
}

func (n *notes) Begin(plan train.Plan) { n.trials = append(n.trials, plan.Trials) }
func (n *notes) Note(text string)      { n.said = append(n.said, text) }
func (n *notes) Warn(text string)      { n.warned = append(n.warned, text) }

// seeds returns trials that share a program.
func seeds(t *testing.T, n int) (list []*train.Trial) {
	o := modeltest.Quickstart(t, 60, 2, 1)
	for i := range n {
		list = append(list, modeltest.Vary(t, o, fmt.Sprint(i), modeltest.Seed(i)))
	}
	return list
}

// Compiled programs are reused for groups of the same size. Compiling for others is reported.
func TestProgramsAreKept(t *testing.T) {
	by := &xla.Trainer{Device: goBackend(t)}
	for _, c := range []struct {
		trials int
		said   string
	}{{2, "compiling for 2 runs of quickstart in one program: steps of 16 instances, "}, {2, ""},
		{1, "compiling for a run of quickstart: "}, {1, ""}, {2, ""}} {
		n := &notes{}
		for _, out := range together(context.Background(), by, seeds(t, c.trials), train.Options{Observer: n}) {
			if out.Err != nil {
				t.Fatal(out.Err)
			}
		}
		if said := strings.Join(n.said, "\n"); !strings.HasPrefix(said, c.said) || c.said == "" && said != "" {
			t.Errorf("%d trials: the notes are %q, want %q", c.trials, said, c.said)
		}
	}
}

// Groups are as large as the set memory permits by the estimate. The error of a single trial that
// is too large names its memory, the available memory and the flag.
func TestGroupsFitMemory(t *testing.T) {
	b := goBackend(t)
	for _, c := range []struct {
		memory float64
		groups []int
	}{{b.Memory.Bytes, []int{5}}, {1 << 20, []int{5}}, {110 << 10, []int{3, 2}}, {80 << 10, []int{1, 1, 1, 1, 1}}} {
		n := &notes{}
		b.Memory = resources.Budget{Bytes: c.memory, Bound: "--device-memory"}
		for _, out := range together(context.Background(), &xla.Trainer{Device: b}, seeds(t, 5),
			train.Options{Observer: n}) {
			if out.Err != nil {
				t.Fatal(out.Err)
			}
		}
		if !slices.Equal(n.trials, c.groups) {
			t.Errorf("in %g bytes: groups of %v, want %v; %q", c.memory, n.trials, c.groups, n.said)
		}
	}
	b.Memory.Bytes = 1 << 10
	out := together(context.Background(), &xla.Trainer{Device: b}, seeds(t, 1), train.Options{})
	for _, want := range []string{"a run of quickstart needs at least", "KiB of memory; 1 KiB are available",
		"(--device-memory)"} {
		if out[0].Err == nil || !strings.Contains(out[0].Err.Error(), want) {
			t.Errorf("in a kibibyte: %v, want %q", out[0].Err, want)
		}
	}
}

// small is a device with memory for the candidates of a limited number of trials.
type small struct {
	compute.Backend
	room int
}

func (s small) BufferFromFlatData(d compute.DeviceNum, flat any, shape shapes.Shape) (compute.Buffer, error) {
	if shape.DType == dtypes.Float32 && shape.Rank() == 3 && shape.Dimensions[0] > s.room {
		return nil, errors.New("PJRT error (code=8): RESOURCE_EXHAUSTED: Out of memory allocating 7 bytes.")
	}
	return s.Backend.BufferFromFlatData(d, flat, shape)
}

// If the device has less memory than estimated, groups are divided; if a single trial is too
// large, the error says what to do.
func TestOutOfMemory(t *testing.T) {
	for _, c := range []struct {
		room   int
		trials []int
		says   string
	}{{4, []int{4}, ""}, {3, []int{2, 2}, ""}, {0, nil, "--device-memory"}} {
		b := xla.NewDevice(&pjrt.OpenDevice{Backend: small{enginetest.Backend(t), c.room}, Memory: resources.Memory()},
			pjrt.Go)
		n := &notes{}
		for _, out := range together(context.Background(), &xla.Trainer{Device: b}, seeds(t, 4),
			train.Options{Observer: n}) {
			if (out.Err == nil) != (c.says == "") || out.Err != nil && !strings.Contains(out.Err.Error(), c.says) {
				t.Errorf("room for %d trials: %v, want %q", c.room, out.Err, c.says)
			}
		}
		if !slices.Equal(n.trials, c.trials) {
			t.Errorf("room for %d trials: groups of %v, want %v", c.room, n.trials, c.trials)
		}
		b.Close()
	}
}
