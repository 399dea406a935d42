// Named streams of random numbers: one reproducible stream for each random purpose of a run.
// A run has one seed. Shuffles, initial parameters, dropout masks, splits and generated datasets
// each read the stream of their own name, so that an additional draw from one stream changes no
// other.

package ndarray

import (
	"crypto/sha256"
	"encoding/binary"
	"math/rand/v2"
)

// NewStream returns the random stream of a purpose. name is the purpose, e.g. "shuffle"; index
// distinguishes its repetitions, e.g. by the epoch. Equal arguments give equal numbers on every
// machine and in every version of miplc; different arguments give independent numbers.
//
// The generator is ChaCha8 with the SHA-256 of the arguments as key. It is not safe for concurrent
// use.
func NewStream(seed uint64, name string, index ...uint64) *rand.Rand {
	return rand.New(Stream(seed, name, index...))
}

// Stream returns the source of the numbers of NewStream, which is faster for many numbers.
func Stream(seed uint64, name string, index ...uint64) *rand.ChaCha8 {
	return rand.NewChaCha8(key(seed, name, index...))
}

// key returns the key of the stream that NewStream returns. Its text is seed, length of the name, name, indices;
// numbers as 8 bytes, little-endian.
func key(seed uint64, name string, index ...uint64) [32]byte {
	text := binary.LittleEndian.AppendUint64(nil, seed)
	text = binary.LittleEndian.AppendUint64(text, uint64(len(name)))
	text = append(text, name...)
	for _, i := range index {
		text = binary.LittleEndian.AppendUint64(text, i)
	}
	return sha256.Sum256(text)
}
