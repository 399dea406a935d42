//go:build linux && cgo && (amd64 || arm64)

package xlatest

import (
	"bufio"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"sync"
	"testing"
	"unsafe"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	goxla "github.com/gomlx/go-xla/compute/xla"
	gopjrt "github.com/gomlx/go-xla/pjrt"
	"github.com/gomlx/go-xla/stablehlo"
)

//go:embed server.py
var server string

// jax is one Python process that compiles and runs programs. Buffers lie with
// the pure Go executor and travel in files.
type jax struct {
	compute.Backend
	builders *goxla.Backend
	lock     sync.Mutex
	in       io.Writer
	out      *bufio.Reader
	dir      string
	programs int
}

var (
	once   sync.Once
	shared *jax
	failed error
)

func throughJAX(t testing.TB, buffers compute.Backend, python string) compute.Backend {
	once.Do(func() { shared, failed = start(buffers, python) })
	if failed != nil {
		t.Fatalf("%s = %s: %v", EnvPython, python, failed)
	}
	return lasting{shared}
}

// lasting is the process that all tests share: closing it would end it for the others.
type lasting struct{ *jax }

func (lasting) Finalize() {}

func start(buffers compute.Backend, python string) (*jax, error) {
	j := &jax{Backend: buffers, builders: &goxla.Backend{}}
	// A builder asks only whether there is a plugin.
	field(j.builders, "plugin").Set(reflect.ValueOf(&gopjrt.Plugin{}))
	dir, err := os.MkdirTemp("", "xlatest")
	if err != nil {
		return nil, err
	}
	j.dir = dir
	cmd := exec.Command(python, "-c", server)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	j.in, j.out = in, bufio.NewReader(out)
	return j, cmd.Start()
}

// field gives access to an unexported field of the library.
func field(p any, name string) reflect.Value {
	f := reflect.ValueOf(p).Elem().FieldByName(name)
	return reflect.NewAt(f.Type(), unsafe.Pointer(f.UnsafeAddr())).Elem()
}

// request and reply are lines of JSON, see server.py.
type request struct {
	Op      string  `json:"op"` // "compile" or "run"
	Program int     `json:"program"`
	Path    string  `json:"path"` // of the StableHLO text; of the outputs, without their number
	Inputs  []array `json:"inputs"`
}

type array struct {
	Path  string `json:"path"`
	Type  string `json:"type"`
	Shape []int  `json:"shape"`
}

type reply struct {
	Error   string  `json:"error"`
	Outputs [][]int `json:"outputs"` // shapes
}

func (j *jax) ask(q request) (*reply, error) {
	line, err := json.Marshal(q)
	if err != nil {
		return nil, err
	}
	if _, err := fmt.Fprintf(j.in, "%s\n", line); err != nil {
		return nil, err
	}
	if line, err = j.out.ReadBytes('\n'); err != nil {
		return nil, err
	}
	var r reply
	if err := json.Unmarshal(line, &r); err != nil {
		return nil, err
	}
	if r.Error != "" {
		return nil, errors.New(r.Error)
	}
	return &r, nil
}

// Builder implements compute.Backend.
func (j *jax) Builder(name string) compute.Builder { return &builder{j.builders.Builder(name), j} }

type builder struct {
	compute.Builder
	*jax
}

func (b *builder) Name() string { return b.Builder.Name() }

// Compile writes the StableHLO text that the library would give to a plugin.
func (b *builder) Compile() (compute.Executable, error) {
	text, err := field(b.Builder.(*goxla.Builder), "builder").Interface().(*stablehlo.Builder).Build()
	if err != nil {
		return nil, err
	}
	b.lock.Lock()
	defer b.lock.Unlock()
	b.programs++
	path := filepath.Join(b.dir, "program.mlir")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		return nil, err
	}
	_, err = b.ask(request{Op: "compile", Program: b.programs, Path: path})
	return &executable{jax: b.jax, id: b.programs}, err
}

type executable struct {
	compute.Executable
	*jax
	id int
}

// Finalize implements compute.Executable; the process keeps its programs.
func (e *executable) Finalize() {}

// Execute implements compute.Executable.
func (e *executable) Execute(in []compute.Buffer, _ []bool, _ compute.DeviceNum) ([]compute.Buffer, error) {
	e.lock.Lock()
	defer e.lock.Unlock()
	q := request{Op: "run", Program: e.id, Path: filepath.Join(e.dir, "out")}
	for i, b := range in {
		a, err := e.write(b, filepath.Join(e.dir, fmt.Sprint("in", i)))
		if err != nil {
			return nil, err
		}
		q.Inputs = append(q.Inputs, a)
	}
	r, err := e.ask(q)
	if err != nil {
		return nil, err
	}
	var out []compute.Buffer
	for i, dims := range r.Outputs {
		raw, err := os.ReadFile(fmt.Sprint(q.Path, i))
		if err != nil {
			return nil, err
		}
		s := shapes.Make(dtypes.Float32, dims...)
		v := make([]float32, s.Size())
		copy(dtypes.UnsafeByteSliceFromAny(v), raw)
		b, err := e.BufferFromFlatData(0, v, s)
		if err != nil {
			return nil, err
		}
		out = append(out, b)
	}
	return out, nil
}

// write puts the values of a buffer into a file.
func (j *jax) write(b compute.Buffer, path string) (array, error) {
	s, err := b.Shape()
	if err != nil {
		return array{}, err
	}
	var values any
	kind := ""
	switch s.DType {
	case dtypes.Int32:
		values, kind = make([]int32, s.Size()), "int32"
	case dtypes.Uint8:
		values, kind = make([]uint8, s.Size()), "uint8"
	default:
		values, kind = make([]float32, s.Size()), "float32"
	}
	if err := b.ToFlatData(values); err != nil {
		return array{}, err
	}
	return array{path, kind, append([]int{}, s.Dimensions...)}, os.WriteFile(path, dtypes.UnsafeByteSliceFromAny(values), 0o600)
}
