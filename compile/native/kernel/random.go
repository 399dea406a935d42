// Random numbers that are functions of their place, so that vectors of them can be computed at once.

package kernel

import "math"

// Random says which numbers the kernel Dropout writes. Number i depends on Key, Stream and i only: 16 blocks of 4
// random words are 64 numbers, first the first words of the blocks. A block is the result of Philox4x32 with seven
// rounds (Salmon et al., Parallel random numbers: as easy as 1, 2, 3, 2011), for the key and the counter (number of the
// block, Stream). Numbers repeat after 2^34.
type Random struct {
	Key    [2]uint32
	Stream [3]uint32
	// Below is the number of the 2^32 random words that give 0; the others give Scale.
	Below uint32
	Scale float32
	// First is the number of the first block, a multiple of 16, so that parts of the numbers can be written: number
	// 4 First and those that follow.
	First uint32
}

// NewRandom returns the numbers that are 0 with a probability below 1, else scale. Its Stream is 0.
func NewRandom(key [2]uint32, probability float64, scale float32) Random {
	below := min(math.Ceil(probability*(1<<32)), math.MaxUint32)
	return Random{Key: key, Below: uint32(below), Scale: scale}
}

const (
	philoxRounds = 7
	philoxM0     = 0xd2511f53
	philoxM1     = 0xcd9e8d57
	philoxW0     = 0x9e3779b9
	philoxW1     = 0xbb67ae85
)

// philox encrypts a counter.
func philox(counter [4]uint32, key [2]uint32, rounds int) [4]uint32 {
	for range rounds {
		x, y := uint64(counter[0])*philoxM0, uint64(counter[2])*philoxM1
		counter = [4]uint32{uint32(y>>32) ^ counter[1] ^ key[0], uint32(y), uint32(x>>32) ^ counter[3] ^ key[1], uint32(x)}
		key[0] += philoxW0
		key[1] += philoxW1
	}
	return counter
}

func dropout(a *Args) {
	if a.N <= 0 {
		return
	}
	r, dst := (*Random)(a.A), numbers(a.Dst, a.N)
	const group, blocks = 64, 16
	for first := 0; first < len(dst); first += group {
		part := dst[first:min(len(dst), first+group)]
		for block := range min(blocks, len(part)) {
			words := philox([4]uint32{r.First + uint32(first/4+block), r.Stream[0], r.Stream[1], r.Stream[2]}, r.Key,
				philoxRounds)
			for i := block; i < len(part); i += blocks {
				part[i] = r.Scale
				if words[i/blocks] < r.Below {
					part[i] = 0
				}
			}
		}
	}
}
