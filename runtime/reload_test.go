// A model can be replaced under load, and a file that would change what callers rely on is refused.

package runtime_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/miplc/miplc/internal/contract"
	"github.com/miplc/miplc/internal/ndarray"
	"github.com/miplc/miplc/internal/onnxpb"
	"github.com/miplc/miplc/runtime"
)

// place writes a model to a temporary file in the same folder and renames it.
func place(t testing.TB, path string, data []byte) {
	t.Helper()
	if err := errors.Join(os.WriteFile(path+".new", data, 0o644), os.Rename(path+".new", path)); err != nil {
		t.Fatal(err)
	}
}

// While bags are predicted, the file at a path alternates between two models and damaged files.
// No prediction fails, each comes from one of the two models, and all bags of one request are
// predicted by the same model.
func TestReloadUnderLoad(t *testing.T) {
	models := [][]byte{readModel(t, "demipl-3x4.onnx"), readModel(t, "saturated-3x4.onnx")}
	for _, be := range backends {
		t.Run(be.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "model.onnx")
			place(t, path, models[0])
			m, err := runtime.Open(path, be.opts...)
			if err != nil {
				t.Fatal(err)
			}
			bags := []runtime.Bag{randomBag(3, 3, 1), randomBag(17, 3, 2), randomBag(1, 3, 3)}
			var want [2][]runtime.Prediction
			for i, data := range models {
				if want[i], err = openBytes(t, data, be.opts...).PredictBatch(context.Background(), bags, nil); err != nil {
					t.Fatal(err)
				}
			}
			var over atomic.Bool
			var seen [2]atomic.Int64
			var load sync.WaitGroup
			for range 4 {
				load.Go(func() {
					to := make([]runtime.Prediction, len(bags))
					for !over.Load() {
						if _, err := m.PredictBatch(context.Background(), bags, to); err != nil {
							t.Error(err)
							return
						}
						which := slices.IndexFunc(want[:], func(p []runtime.Prediction) bool {
							return slices.EqualFunc(p, to, func(a, b runtime.Prediction) bool {
								return difference(a.Probabilities, ndarray.Convert[float64](b.Probabilities)) == nil &&
									difference(a.Attention, ndarray.Convert[float64](b.Attention)) == nil
							})
						})
						if which < 0 {
							t.Errorf("predictions of neither model: %v", to)
							return
						}
						seen[which].Add(1)
					}
				})
			}
			const rounds = 10
			for round := range rounds {
				place(t, path, models[1-round%2])
				if err := m.Reload(path); err != nil {
					t.Error(err)
				}
				place(t, path, models[1][:len(models[1])*round/rounds])
				if err := m.Reload(path); !errors.Is(err, runtime.ErrContract) || !strings.HasPrefix(err.Error(), path) {
					t.Errorf("a model cut at %d of %d: %v", round, rounds, err)
				}
				for before := seen[1-round%2].Load(); seen[1-round%2].Load() == before && !t.Failed(); {
					if _, err := m.Predict(context.Background(), bags[0]); err != nil {
						t.Error(err)
					}
				}
			}
			over.Store(true)
			load.Wait()
			if err := m.Close(); err != nil {
				t.Error(err)
			}
			place(t, path, models[0])
			if err := m.Reload(path); !errors.Is(err, runtime.ErrClosed) {
				t.Errorf("reloading a closed model: %v", err)
			}
		})
	}
}

// A file that cannot replace the model gives an error with the reason, and the model stays.
func TestReloadRefuses(t *testing.T) {
	m := open(t, "demipl-3x4.onnx")
	bag := randomBag(5, 3, 1)
	want, err := m.Predict(context.Background(), bag)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	five := func(names string) func(*onnxpb.ModelProto) { return meta(contract.KeyClasses, names) }
	for name, c := range map[string]struct {
		data []byte
		want string
	}{
		"shape.onnx": {readModel(t, "demipl-38x13.onnx"), "it takes instances of shape [38], the model in use of [3]"},
		"classes.onnx": {edited(t, five(`["class 0", "class 2", "class 1", "class 3"]`)),
			`its class number 2 is "class 2", that of the model in use "class 1"`},
		"labels.onnx": {edited(t, meta(contract.KeyThreshold, "0.5")),
			"it predicts any number of labels, the model in use one"},
		"text.onnx": {[]byte("model: demipl\n"), "not a model"},
		"graph.onnx": {edited(t, func(m *onnxpb.ModelProto) { m.Graph.Node[0].Input = m.Graph.Node[0].Input[:1] }),
			"the shapes do not fit together"},
	} {
		path := filepath.Join(dir, name)
		place(t, path, c.data)
		if err := m.Reload(path); err == nil || !strings.HasPrefix(err.Error(), path+": ") ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := m.Reload(filepath.Join(dir, "none.onnx")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	got, err := m.Predict(context.Background(), bag)
	if err != nil || !slices.Equal(got.Probabilities, want.Probabilities) {
		t.Errorf("afterwards: %v, %v, want %v", got, err, want)
	}
}

// A model with the same features in another order is rejected: it would read the wrong columns.
func TestReloadComparesFeatures(t *testing.T) {
	named := func(features string) []byte {
		return edited(t, meta(contract.KeyColumns, `{"features":[`+features+`]}`))
	}
	path := filepath.Join(t.TempDir(), "model.onnx")
	place(t, path, named(`"size","weight","age"`))
	file, err := runtime.Open(path)
	m := openFile(t, file, err)
	place(t, path, named(`"weight","size","age"`))
	if err := m.Reload(path); err == nil || !strings.Contains(err.Error(),
		`its features are ["weight" "size" "age"], those of the model in use ["size" "weight" "age"]`) {
		t.Errorf("other order of features: %v", err)
	}
	place(t, path, readModel(t, "demipl-3x4.onnx")) // a model whose features have no names
	if err := m.Reload(path); err != nil {
		t.Error(err)
	}
}

// A model without an attention of each class does not replace one that has it, and one label not any
// number.
func TestReloadComparesOutputs(t *testing.T) {
	half := 0.5
	has, any := runtime.Info{Metadata: contract.Metadata{ClassAttention: true}},
		runtime.Info{Metadata: contract.Metadata{Threshold: &half}}
	for want, err := range map[string]error{
		"it has no attention of each class": has.CheckReplacement(runtime.Info{}),
		"it predicts one label":             any.CheckReplacement(runtime.Info{}),
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if err := (runtime.Info{}).CheckReplacement(has); err != nil {
		t.Errorf("a further output: %v", err)
	}
}

// slow is a back end whose first session blocks its first prediction until let is closed. It
// counts the sessions that are open.
type slow struct {
	opened, closed atomic.Int32
	begun, let     chan struct{}
	closing        error // returned by Close of a session
}

type slowSession struct {
	*slow
	number, runs int32
}

func (*slow) Name() string { return contract.BackendORT }

func (s *slow) Open(*runtime.File) (runtime.Session, error) {
	return &slowSession{slow: s, number: s.opened.Add(1)}, nil
}

func (s *slowSession) Run(_ context.Context, _ []runtime.Bag, to []runtime.Prediction) error {
	if s.number == 1 && atomic.AddInt32(&s.runs, 1) == 1 {
		close(s.begun)
		<-s.let
	}
	clear(to[0].Probabilities)
	clear(to[0].Attention)
	to[0].Probabilities[s.number] = 1
	return nil
}

func (s *slowSession) Close() error {
	s.closed.Add(1)
	return s.closing
}

// A replaced model is closed once, after its last prediction. Meanwhile the new one serves.
func TestReloadClosesAfterTheLastPrediction(t *testing.T) {
	s := &slow{begun: make(chan struct{}), let: make(chan struct{})}
	m := openWith(t, "demipl-3x4.onnx", runtime.WithBackend(s))
	label := func() int {
		p, err := m.Predict(context.Background(), randomBag(2, 3, 1))
		if err != nil {
			t.Error(err)
		}
		return p.Label
	}
	first := make(chan int)
	go func() { first <- label() }()
	<-s.begun
	reloaded := make(chan error)
	go func() { reloaded <- m.Reload("testdata/demipl-3x4.onnx") }()
	for s.opened.Load() < 2 || label() != 2 {
	}
	if s.closed.Load() != 0 {
		t.Error("the old model was closed with a prediction under way")
	}
	close(s.let)
	if got := <-first; got != 1 {
		t.Errorf("the old model's prediction: %d", got)
	}
	if err := <-reloaded; err != nil || s.closed.Load() != 1 {
		t.Errorf("reloaded: %v, %d closed", err, s.closed.Load())
	}
}

// If the old model cannot be freed, Reload logs it, returns no error and uses the new model.
func TestReloadTellsOfAModelThatIsNotFreed(t *testing.T) {
	var out bytes.Buffer
	s := &slow{begun: make(chan struct{}), let: make(chan struct{}), closing: errors.New("it is in use")}
	close(s.let)
	m, err := runtime.Open("testdata/demipl-3x4.onnx", runtime.WithBackend(s),
		runtime.WithLogger(slog.New(slog.NewTextHandler(&out, nil))))
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Reload("testdata/demipl-3x4.onnx"); err != nil {
		t.Errorf("reloaded: %v", err)
	}
	if p, err := m.Predict(context.Background(), randomBag(2, 3, 1)); err != nil || p.Label != 2 {
		t.Errorf("afterwards: %v, %v", p, err)
	}
	for _, want := range []string{`level=WARN msg="the model that was replaced is not freed" error="it is in use"`,
		`msg="model reloaded"`} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("logged\n%swant %s", out.String(), want)
		}
	}
}

// The methods of a zero Model return errors and do not panic.
func TestZeroModel(t *testing.T) {
	for name, m := range map[string]*runtime.Model{"zero": {}, "nil": nil} {
		ctx, bag := t.Context(), runtime.Bag{Instances: []float32{1}, N: 1}
		_, predict := m.Predict(ctx, bag)
		_, batch := m.PredictBatch(ctx, []runtime.Bag{bag}, nil)
		for method, err := range map[string]error{
			"Predict": predict, "PredictBatch": batch, "Reload": m.Reload("model.onnx"),
		} {
			if !errors.Is(err, runtime.ErrClosed) || !strings.Contains(err.Error(), "never opened") {
				t.Errorf("%s model: %s: %v", name, method, err)
			}
		}
		if err := m.Close(); err != nil {
			t.Errorf("%s model: Close: %v", name, err)
		}
		if i := m.Info(); i.Contract != "" || i.String() == "" {
			t.Errorf("%s model: %+v", name, i)
		}
	}
}
