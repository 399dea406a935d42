// Batches and normalisation.

package data

import (
	"math"
	"reflect"
	"runtime"
	"slices"
	"testing"

	"github.com/miplc/miplc/internal/ndarray"
)

func TestAssemble(t *testing.T) {
	d := &Dataset{
		Shape: []int{2}, Offsets: []int{0, 2, 3, 6}, Instances: []float32{0.5, -1, 2, 1e-20, 3, 4, 0, 1, -7.25, 3e8, 0.1,
			0.2},
		Classes: 3, Candidates: []uint8{1, 1, 0, 0, 1, 1, 1, 0, 1},
	}
	var b Loaded
	b.assemble(d, []int{2, 0, 1}, nil) // allocates larger buffers
	b.assemble(d, []int{1, 0}, nil)
	want := Loaded{
		Bags:       []int{1, 0},
		Instances:  []float32{3, 4, 0.5, -1, 2, 1e-20},
		BagOf:      []int{0, 1, 1},
		Candidates: []float32{0, 1, 1, 1, 1, 0},
	}
	if !reflect.DeepEqual(b, want) {
		t.Errorf("got  %+v\nwant %+v", b, want)
	}
	before := slices.Clone(d.Instances)
	if n := testing.AllocsPerRun(10, func() {
		b.assemble(d, []int{1}, nil)
		if !b.Shared || &b.Instances[0] != &d.Instances[4] || len(b.Instances) != 2 {
			t.Errorf("a bag alone is copied: %+v", b)
		}
		b.assemble(d, []int{1, 0}, nil)
	}); n != 0 {
		t.Errorf("assembling again takes %v allocations", n)
	}
	if want.own = b.own; !reflect.DeepEqual(b, want) || !slices.Equal(d.Instances, before) {
		t.Errorf("after a bag alone: %+v, dataset %v", b, d.Instances)
	}
}

func TestBatches(t *testing.T) {
	got := Batches([]int{4, 2, 9, 1, 7}, 2)
	if want := [][]int{{4, 2}, {9, 1}, {7}}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestNormalization(t *testing.T) {
	d := &Dataset{
		Shape:      []int{3},
		Instances:  []float32{1, 5, 1e6 + 1, 3, 5, 1e6 + 3, 100, 100, 100},
		Offsets:    []int{0, 1, 2, 3},
		Candidates: []uint8{1, 1, 1, 1, 1, 1},
		Classes:    2,
	}
	z, _ := NewNormalization(d, []int{0, 1}) // bag 3 is a test bag and must not count
	if want := (&Normalization{Mean: []float32{2, 5, 1e6 + 2}, Std: []float32{1, 1, 1}}); !reflect.DeepEqual(z, want) {
		t.Errorf("statistics %+v, want %+v", z, want)
	}
	got := make([]float32, len(d.Instances))
	if z.Apply(got, d.Instances); !slices.Equal(got[:3], []float32{-1, 0, -1}) || d.Instances[0] != 1 {
		t.Errorf("z-scores %v of %v", got, d.Instances)
	}
	all, _ := NewNormalization(d, []int{0, 1, 2})
	mean := 104.0 / 3
	std := math.Sqrt((1+9+10000)/3.0 - mean*mean)
	if math.Abs(float64(all.Mean[0])-mean) > 1e-5 || math.Abs(float64(all.Std[0])-std) > 1e-5 {
		t.Errorf("feature 1 has %v and %v, want %v and %v", all.Mean[0], all.Std[0], mean, std)
	}
	if z.Apply(d.Instances, d.Instances); !slices.Equal(got, d.Instances) {
		t.Errorf("in place: z-scores %v, not %v", d.Instances, got)
	}
}

// halves is a store of bags of zeros, as numbers of 16 bits if half is true.
type halves struct{ half bool }

func (halves) ReadInstances(to []float32, _ int, _ []int) error { return nil }
func (h halves) Half(int) (ndarray.Encoding, bool) {
	return ndarray.Encoding{Kind: ndarray.Float, Size: 2}, h.half
}
func (halves) ReadHalf(to []byte, _ int) error { return nil }

// A loader allocates its two buffers in the first iteration. A later iteration over a single batch, e.g.
// the evaluation of one test bag, does not allocate a third one.
func TestLoaderAllocatesOnce(t *testing.T) {
	const n, dim = 1000, 256
	d := &Dataset{Shape: []int{dim}, Offsets: []int{0, n, 2 * n, 3 * n}, Candidates: make([]uint8, 6), Classes: 2}
	for _, half := range []bool{false, true} {
		d.Store = halves{half}
		l := NewLoader(d, n)
		load := func(batches ...[]int) (allocated uint64) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			for _, err := range l.Load(batches, nil) {
				if err != nil {
					t.Fatal(err)
				}
			}
			runtime.ReadMemStats(&after)
			return after.TotalAlloc - before.TotalAlloc
		}
		first, most := load([]int{0}, []int{1}), uint64(2*4*n*dim)
		if half {
			most = 6 * n * dim
		}
		if slack := uint64(400_000); first > most+slack || load([]int{2}) > slack || load([]int{1}, []int{0}) > slack {
			t.Errorf("16 bits %v: the first iteration allocated %d bytes, or a later one a buffer", half, first)
		}
	}
}
