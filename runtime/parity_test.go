// Every back end agrees with the equations of the models, evaluated here in float64, on bags of any size.

package runtime_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/miplc/miplc/internal/ndarray"
	"github.com/miplc/miplc/internal/onnxpb"
	"github.com/miplc/miplc/internal/testkit/enginetest"
	"github.com/miplc/miplc/runtime"
	"github.com/miplc/miplc/runtime/onnxgo"
)

// tolerance is the largest accepted absolute difference between two engines.
const tolerance = 1e-5

// open opens a file of testdata with onnxruntime.
func open(t testing.TB, name string, opts ...runtime.Option) *runtime.Model {
	t.Helper()
	enginetest.Library(t)
	return openWith(t, name, opts...)
}

func openWith(t testing.TB, name string, opts ...runtime.Option) *runtime.Model {
	t.Helper()
	m, err := runtime.Open("testdata/"+name, opts...)
	return openFile(t, m, err)
}

// openFile returns a model that is closed at the end of the test.
func openFile(t testing.TB, m *runtime.Model, err error) *runtime.Model {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	return m
}

// randomBag draws n instances of d standard normal features.
func randomBag(n, d int, seed uint64) runtime.Bag {
	r := rand.New(rand.NewPCG(seed, uint64(n)))
	b := runtime.Bag{N: n, Instances: make([]float32, n*d)}
	for i := range b.Instances {
		b.Instances[i] = float32(r.NormFloat64())
	}
	return b
}

// demipl computes the models of testdata/make_models.py in float64, from the equations and the
// parameters in the file.
type demipl struct{ params map[string][]float64 }

func readDemipl(t testing.TB, name string) demipl {
	t.Helper()
	pb, err := onnxpb.Read("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	m := demipl{params: map[string][]float64{}}
	for _, p := range pb.GetGraph().GetInitializer() {
		for _, v := range p.Floats() {
			m.params[p.GetName()] = append(m.params[p.GetName()], float64(v))
		}
	}
	return m
}

func (m demipl) dense(x []float64, name string) []float64 {
	y := append([]float64(nil), m.params[name+".bias"]...)
	w := m.params[name+".weight"]
	for i, v := range x {
		for j := range y {
			y[j] += v * w[i*len(y)+j]
		}
	}
	return y
}

// predict returns probabilities and attention: a_j = sigmoid(s_j), z = sum_j a_j h_j / sum_j a_j,
// p = softmax(classifier(z)). The ratio is computed from log a minus its maximum, so that it is
// defined even if every a_j underflows.
func (m demipl) predict(b runtime.Bag) (probabilities, attention []float64) {
	d := len(b.Instances) / b.N
	logA := make([]float64, b.N)
	largest := math.Inf(-1)
	rows := make([][]float64, b.N)
	for j := range b.N {
		x := make([]float64, d)
		for i := range x {
			x[i] = float64(b.Instances[j*d+i])
		}
		rows[j] = x
		v, u := m.dense(x, "attention.v"), m.dense(x, "attention.u")
		s := 0.0
		for i, w := range m.params["attention.w"] {
			s += w * math.Tanh(v[i]) / (1 + math.Exp(-u[i]))
		}
		logA[j] = -(math.Max(-s, 0) + math.Log1p(math.Exp(-math.Abs(s))))
		attention = append(attention, math.Exp(logA[j]))
		largest = math.Max(largest, logA[j])
	}
	z, sum := make([]float64, d), 0.0
	for j, x := range rows {
		w := math.Exp(logA[j] - largest)
		sum += w
		for i := range z {
			z[i] += w * x[i]
		}
	}
	for i := range z {
		z[i] /= sum
	}
	return softmax(m.dense(z, "classifier")), attention
}

func softmax(x []float64) []float64 {
	largest, sum := x[0], 0.0
	for _, v := range x {
		largest = math.Max(largest, v)
	}
	y := make([]float64, len(x))
	for i, v := range x {
		y[i] = math.Exp(v - largest)
		sum += y[i]
	}
	for i := range y {
		y[i] /= sum
	}
	return y
}

// near compares a prediction with the reference.
func near(t *testing.T, what string, got []float32, want []float64) {
	t.Helper()
	if err := difference(got, want); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

// difference returns an error that names the first value beyond the tolerance.
func difference(got []float32, want []float64) error {
	if len(got) != len(want) {
		return fmt.Errorf("%d values, want %d", len(got), len(want))
	}
	for i := range want {
		if d := math.Abs(float64(got[i]) - want[i]); !(d <= tolerance) {
			return fmt.Errorf("[%d] = %v, want %v (differ by %g)", i, got[i], want[i], d)
		}
	}
	return nil
}

var backends = []struct {
	name string
	opts []runtime.Option
}{
	{"onnxruntime", nil},
	{"onnx-go", []runtime.Option{runtime.WithBackend(onnxgo.Backend())}},
}

// Every back end agrees with the equations on bags of 1 to 1000 instances, also when a session
// is used again and with saturated attention.
func TestBackendsAgreeWithTheEquations(t *testing.T) {
	for _, file := range []string{"demipl-3x4.onnx", "demipl-38x13.onnx", "saturated-3x4.onnx"} {
		reference := readDemipl(t, file)
		for _, be := range backends {
			t.Run(file+"/"+be.name, func(t *testing.T) {
				m := open(t, file, be.opts...)
				d := m.Info().InputShape[0]
				for round := range uint64(3) {
					for _, n := range []int{1, 2, 40, 1000} {
						bag := randomBag(n, d, round)
						got, err := m.Predict(context.Background(), bag)
						if err != nil {
							t.Fatal(err)
						}
						p, a := reference.predict(bag)
						near(t, fmt.Sprintf("round %d, bag of %d: probabilities", round, n), got.Probabilities, p)
						near(t, fmt.Sprintf("round %d, bag of %d: attention", round, n), got.Attention, a)
					}
				}
			})
		}
	}
}

// The scores of the model called saturated really are large.
func TestSaturatedModelSaturates(t *testing.T) {
	_, a := readDemipl(t, "saturated-3x4.onnx").predict(randomBag(1000, 3, 0))
	low, high := 1.0, 0.0
	for _, v := range a {
		low, high = math.Min(low, v), math.Max(high, v)
	}
	if low > 1e-25 || high < 1-1e-15 {
		t.Errorf("attention spans %g to %g", low, high)
	}
}

func TestBackendsAgreeOnImages(t *testing.T) {
	a := open(t, "image-12x12.onnx")
	b := openWith(t, "image-12x12.onnx", backends[1].opts...)
	for _, n := range []int{1, 2, 40} {
		bag := randomBag(n, 144, 5)
		x, err := a.Predict(context.Background(), bag)
		if err != nil {
			t.Fatal(err)
		}
		y, err := b.Predict(context.Background(), bag)
		if err != nil {
			t.Fatal(err)
		}
		near(t, "probabilities", x.Probabilities, ndarray.Convert[float64](y.Probabilities))
		near(t, "attention", x.Attention, ndarray.Convert[float64](y.Attention))
	}
}

// batch-3x4.onnx has the parameters of demipl-3x4.onnx.
func TestBatchSignature(t *testing.T) {
	reference := readDemipl(t, "demipl-3x4.onnx")
	for _, file := range []string{"batch-3x4.onnx", "demipl-3x4.onnx"} {
		m := open(t, file)
		var bags []runtime.Bag
		for i := range 150 {
			bags = append(bags, randomBag(1+i%60, 3, uint64(i)))
		}
		bags = append(bags, randomBag(5000, 3, 1), randomBag(1, 3, 2))
		all, err := m.PredictBatch(context.Background(), bags, nil)
		if err != nil {
			t.Fatal(err)
		}
		for i, bag := range bags {
			p, a := reference.predict(bag)
			near(t, fmt.Sprintf("%s bag %d: probabilities", file, i), all[i].Probabilities, p)
			near(t, fmt.Sprintf("%s bag %d: attention", file, i), all[i].Attention, a)
			one, err := m.Predict(context.Background(), bag)
			if err != nil {
				t.Fatal(err)
			}
			if one.Label != all[i].Label || one.Class != fmt.Sprintf("class %d", one.Label) {
				t.Errorf("%s bag %d: label %d (%s) by itself, %d in the batch", file, i, one.Label, one.Class, all[i].Label)
			}
		}
	}
}
