// Bags that stay on disk.

package data

import (
	"iter"
	"runtime/debug"
	"slices"

	"github.com/miplc/miplc/internal/ndarray"
	"github.com/miplc/miplc/internal/resources"
)

// Store reads the instances of bags that stay on disk. It is safe for concurrent use.
type Store interface {
	// ReadInstances reads the instances of a bag with the given numbers, which ascend. Its errors name the bag and
	// the file.
	ReadInstances(to []float32, bag int, instances []int) error
}

// HalfStore is a Store that can read numbers of 16 bits without converting them, so that they need
// half of the memory.
type HalfStore interface {
	Store
	// Half returns the type of the numbers in the file of a bag. ok is true for float16 and bfloat16.
	Half(bag int) (number ndarray.Encoding, ok bool)
	// ReadHalf reads all instances of such a bag into to. Its errors are those of ReadInstances.
	ReadHalf(to []byte, bag int) error
}

// OnDisk reports whether the instances stay on disk. d.Instances is then nil.
func (d *Dataset) OnDisk() bool { return d.Store != nil }

// Bag returns the instances of bag i, [n, Dim]. The slice shares memory with the dataset, or is new
// if the dataset is on disk.
func (d *Dataset) Bag(i int) ([]float32, error) {
	if !d.OnDisk() {
		dim := d.Dim()
		return d.Instances[d.Offsets[i]*dim : d.Offsets[i+1]*dim], nil
	}
	x := make([]float32, d.Size(i)*d.Dim())
	return x, d.ReadRange(x, i, 0)
}

// ReadRange copies instances of bag i to the slice to until it is full, starting with instance
// number first.
func (d *Dataset) ReadRange(to []float32, i, first int) error {
	if d.OnDisk() {
		instances := make([]int, len(to)/d.Dim())
		for j := range instances {
			instances[j] = first + j
		}
		return d.Store.ReadInstances(to, i, instances)
	}
	copy(to, d.Instances[(d.Offsets[i]+first)*d.Dim():d.Offsets[i+1]*d.Dim()])
	return nil
}

// ReadSelected copies the instances of bag i with the given numbers, which ascend.
func (d *Dataset) ReadSelected(to []float32, i int, instances []int) error {
	if d.OnDisk() {
		return d.Store.ReadInstances(to, i, instances)
	}
	dim := d.Dim()
	for _, instance := range instances {
		at := (d.Offsets[i] + instance) * dim
		to = to[copy(to, d.Instances[at:at+dim]):]
	}
	return nil
}

// All returns the instances of all bags, [instances, Dim]. It reads a dataset on disk into memory
// and fails if there is not enough memory.
func (d *Dataset) All() ([]float32, error) {
	values := d.Offsets[d.Bags()] * d.Dim()
	if !d.OnDisk() {
		return d.Instances[:values], nil
	}
	if err := resources.Memory().Check("reading all of "+d.Name, 4*float64(values),
		"use the engine native, which reads a bag at a time"); err != nil {
		return nil, err
	}
	x := make([]float32, values)
	for i := range d.Bags() {
		if err := d.ReadRange(x[d.Offsets[i]*d.Dim():d.Offsets[i+1]*d.Dim()], i, 0); err != nil {
			return nil, err
		}
	}
	return x, nil
}

// Each calls f with the instances of each of bags. The slice is valid only during the call. For a
// dataset on disk the next bag is read meanwhile.
func (d *Dataset) Each(bags []int, f func(bag int, x []float32) error) error {
	if d.OnDisk() {
		defer debug.FreeOSMemory() // returns the buffers before others are allocated
		for b, err := range NewLoader(d, d.MaxInstances(bags, 1)).Load(Batches(bags, 1), nil) {
			if err == nil {
				err = f(b.Bags[0], b.Instances)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
	for _, i := range bags {
		x, _ := d.Bag(i) // which is in memory
		if err := f(i, x); err != nil {
			return err
		}
	}
	return nil
}

// Loader assembles batches of bags of a dataset in two buffers that it reuses.
type Loader struct {
	data    *Dataset
	largest int // instances of the largest batch
	buffers [2]*Loaded
}

// NewLoader returns a loader for d. For a dataset on disk, the first read allocates two buffers (one for
// a single batch) for up to largest instances, because buffers that grow would be in memory together with
// their smaller copies. The buffer of the next batch has half the size if the files contain numbers of
// 16 bits.
func NewLoader(d *Dataset, largest int) *Loader {
	return &Loader{data: d, largest: largest, buffers: [2]*Loaded{{}, {}}}
}

// Load iterates over batches. Each is valid until the next iteration. draw selects the instances of
// a bag; nil: all. For a dataset on disk Load reads the next batch while the caller works on the
// current one, so that two batches are in memory. It ends after the first error. Do not run two
// iterations of one Loader at a time.
func (l *Loader) Load(batches [][]int, draw *Draw) iter.Seq2[*Loaded, error] {
	return func(yield func(*Loaded, error) bool) {
		if l.data.OnDisk() {
			l.readAhead(batches, draw, yield)
			return
		}
		b := l.buffers[0]
		for _, bags := range batches {
			if err := b.assemble(l.data, bags, draw); !yield(b, err) || err != nil {
				return
			}
		}
	}
}

// readBatch is a batch that was read in advance.
type readBatch struct {
	*Loaded
	err error
}

// readAhead reads batches in a goroutine: into the two buffers alternately, or, as numbers of 16 bits,
// into the first buffer, from which the second one is converted when the caller asks for it.
func (l *Loader) readAhead(batches [][]int, draw *Draw, yield func(*Loaded, error) bool) {
	// one batch needs only the second buffer, which always has numbers of 32 bits
	buffers := l.buffers[max(0, 2-len(batches)):]
	half := len(buffers) == 2 && draw == nil && l.isHalf(batches)
	l.reserve(buffers, half)
	if half {
		buffers = buffers[:1]
	}
	free, read, stop := make(chan *Loaded, 2), make(chan readBatch), make(chan struct{})
	for _, b := range buffers {
		free <- b
	}
	var reader resources.Group
	reader.Go(func() {
		defer close(read)
		for _, bags := range batches {
			var b *Loaded
			select {
			case <-stop:
				return
			case b = <-free:
			}
			var err error
			if half {
				err = b.assembleHalf(l.data, bags)
			} else {
				err = b.assemble(l.data, bags, draw)
			}
			select {
			case <-stop:
				return
			case read <- readBatch{b, err}:
			}
			if err != nil {
				return
			}
		}
	})
	defer reader.Wait()
	defer close(stop)
	for b := range read {
		current := b.Loaded
		if half && b.err == nil {
			current = l.buffers[1]
			current.convert(l.data, b.Loaded)
			free <- b.Loaded
		}
		if !yield(current, b.err) || b.err != nil {
			return
		}
		if !half {
			free <- b.Loaded
		}
	}
}

// isHalf reports whether all files of batches contain numbers of 16 bits.
func (l *Loader) isHalf(batches [][]int) bool {
	store, ok := l.data.Store.(HalfStore)
	return ok && !slices.ContainsFunc(batches, func(bags []int) bool {
		return slices.ContainsFunc(bags, func(bag int) bool { _, half := store.Half(bag); return !half })
	})
}

// reserve allocates buffers; the first one for numbers of 16 bits if half is true.
func (l *Loader) reserve(buffers []*Loaded, half bool) {
	values := l.largest * l.data.Dim()
	for i, b := range buffers {
		if cap(b.BagOf) < l.largest {
			b.BagOf = make([]int, 0, l.largest)
		}
		if half && i == 0 {
			if b.Instances = nil; cap(b.half) < 2*values {
				b.half = make([]byte, 0, 2*values)
			}
		} else if b.half = nil; cap(b.Instances) < values {
			b.Instances = make([]float32, 0, values)
		}
	}
}

// selection reads some of the bags of a dataset on disk.
type selection struct {
	from *Dataset
	bags []int // their numbers in from
}

func (s *selection) ReadInstances(to []float32, bag int, instances []int) error {
	return s.from.Store.ReadInstances(to, s.bags[bag], instances)
}

// Files returns the files of a bag, see Dataset.Files.
func (s *selection) Files(bag int) []File { return s.from.Files(s.bags[bag]) }
