// Dropout masks.

package train

import (
	"unsafe"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/compile/native/kernel"
	"github.com/miplc/miplc/internal/ndarray"
)

// Dropout draws the values of a dropout mask. They depend on the seed, the name of the mask, the epoch, the step and
// the place only, so that engines which draw them in other ways get the same ones. It is not safe for concurrent use.
type Dropout struct {
	fill   func(*kernel.Args)
	args   kernel.Args
	random kernel.Random
	values [1024]float32 // of bytes; a multiple of 64, see kernel.Random
}

// NewDropout returns the values of a mask in a training with a seed.
func NewDropout(m *compile.Mask, seed uint64) *Dropout {
	key := ndarray.Stream(seed, m.Name).Uint64()
	return &Dropout{fill: kernel.Best().Run[kernel.Dropout],
		random: kernel.NewRandom([2]uint32{uint32(key), uint32(key >> 32)}, m.Drop, m.Scale())}
}

// Draw writes the mask of a step: 0 with the probability of the mask, else its scale. Epoch and step count from 1.
func (d *Dropout) Draw(mask []float32, epoch, step int) {
	d.random.Stream = [3]uint32{uint32(step), uint32(epoch)}
	d.args = kernel.Args{Dst: unsafe.Pointer(unsafe.SliceData(mask)), A: unsafe.Pointer(&d.random), N: len(mask)}
	d.fill(&d.args)
	d.args.Dst = nil
}

// DrawBytes writes the same mask with 1 in place of the scale.
func (d *Dropout) DrawBytes(mask []uint8, epoch, step int) {
	for first := 0; first < len(mask); first += len(d.values) {
		part := mask[first:min(len(mask), first+len(d.values))]
		d.random.First = uint32(first / 4)
		d.Draw(d.values[:len(part)], epoch, step)
		for i, v := range d.values[:len(part)] {
			part[i] = 0
			if v != 0 {
				part[i] = 1
			}
		}
	}
	d.random.First = 0
}
