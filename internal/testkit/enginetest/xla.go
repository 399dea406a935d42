// The executor of XLA programs in tests: compute's in pure Go or, with the environment variable MIPLC_TEST_XLA, XLA
// itself: on the CPU (plugin) with the plugin that `miplc runtime install xla` downloads, or on a GPU (cuda, and
// cuda-tf32 with rounded factors).

package enginetest

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/gobackend"

	"github.com/miplc/miplc/internal/libraries"
	"github.com/miplc/miplc/internal/resources"
	"github.com/miplc/miplc/train/xla/pjrt"
)

// envExecutor is the environment variable that selects the executor.
const envExecutor = "MIPLC_TEST_XLA"

// OnPlugin reports whether tests run through a plugin.
func OnPlugin() bool { return os.Getenv(envExecutor) != "" }

// OnlyOnPlugin skips a test of XLA itself unless tests run through a plugin.
func OnlyOnPlugin(t testing.TB) {
	t.Helper()
	if !OnPlugin() {
		t.Skip(envExecutor + "=plugin runs it through XLA, as the check plugin of .ci/run does")
	}
}

// Tolerance returns the allowed difference from the interpreter, given the one on a CPU. GPUs have
// another exponential function and another order of sums. With rounded factors, differences are
// only measured.
func Tolerance(onCPU float64) float64 {
	switch os.Getenv(envExecutor) {
	case "cuda":
		return math.Max(onCPU, 1e-4)
	case "cuda-tf32":
		return math.MaxFloat64
	}
	return onCPU
}

// Plugin returns the path of a plugin for CPUs and installs it if it is missing, so that no test
// that needs it is skipped.
func Plugin(t testing.TB) string {
	t.Helper()
	path, err := plugin()
	if err != nil {
		t.Fatalf("this test needs a PJRT plugin for CPUs: %v", err)
	}
	return path
}

var plugin = sync.OnceValues(func() (string, error) {
	if path, err := pjrt.Find(pjrt.CPU, ""); err == nil {
		return path, nil
	}
	// Shorter than go test's limit of ten minutes, which would print stacks instead of the reason.
	ctx, cancel := context.WithTimeout(context.Background(), 9*time.Minute)
	defer cancel()
	p, err := pjrt.Install(ctx, libraries.InstallOptions{Progress: os.Stderr})
	return p.Path, err
})

var shared = sync.OnceValues(func() (*pjrt.OpenDevice, error) {
	switch name := os.Getenv(envExecutor); name {
	case "plugin":
		path, err := plugin()
		if err != nil {
			return nil, err
		}
		return pjrt.FirstDevice(pjrt.CPU, path)
	case "cuda":
		return pjrt.FirstDevice(pjrt.CUDA, "")
	case "cuda-tf32":
		os.Setenv("NVIDIA_TF32_OVERRIDE", "1") // any value but 0 lets NVIDIA's libraries round factors to TF32
		return pjrt.FirstDevice(pjrt.CUDA, "")
	default:
		return nil, fmt.Errorf("%s is %q: it can be plugin, cuda or cuda-tf32", envExecutor, name)
	}
})

// Backend returns the executor. All tests of a process share the plugin's.
func Backend(t testing.TB) compute.Backend {
	t.Helper()
	if OnPlugin() {
		b, err := shared()
		if err != nil {
			t.Fatal(err)
		}
		return lasting{b}
	}
	b, err := executor()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Open opens the device go, an executor of XLA's programs in pure Go, and other devices like pjrt.FirstDevice.
func Open(kind pjrt.Kind, plugin string) (*pjrt.OpenDevice, error) {
	if kind != pjrt.Go {
		return pjrt.FirstDevice(kind, plugin)
	}
	b, err := executor()
	if err != nil {
		return nil, err
	}
	return &pjrt.OpenDevice{Backend: b, Text: "pure Go executor", Memory: resources.Memory()}, nil
}

// executor opens compute's executor. Its other modes run operations at once and can deadlock.
func executor() (compute.Backend, error) { return gobackend.New("ops_sequential") }

// lasting is a backend that all tests share. Its Close does nothing, because it would close it for
// other tests.
type lasting struct{ *pjrt.OpenDevice }

func (lasting) Finalize() {}

// Unoptimized runs the calling test again in a separate process in which XLA does not optimise: it
// then computes values again wherever they are used, rounded differently. It returns true in that
// process, where the test continues, and false in the other one, where the test is done.
func Unoptimized(t *testing.T) bool {
	t.Helper()
	const flags, level = "XLA_FLAGS", "--xla_backend_optimization_level=0"
	if strings.Contains(os.Getenv(flags), level) {
		return true
	}
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v=true", "-test.count=1")
	cmd.Env = append(os.Environ(), flags+"="+os.Getenv(flags)+" "+level)
	out, err := cmd.CombinedOutput()
	if err != nil || !bytes.Contains(out, []byte("--- PASS: "+t.Name())) {
		t.Errorf("without optimisation of XLA: %v\n%s", err, out)
	}
	return false
}
