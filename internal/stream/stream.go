// Package stream gives every random purpose of a run its own reproducible
// source of random numbers. A run has one seed; shuffles, initial parameters,
// dropout masks, splits and drawn data sets each read a stream of their own
// name, so that adding a draw to one changes no other.
package stream

import (
	"crypto/sha256"
	"encoding/binary"
	"math/rand/v2"
)

// New returns the stream of a purpose. The name says what it is for, e.g.
// "shuffle"; the indices tell apart its repetitions, e.g. the epoch. The same
// arguments give the same numbers on every machine and in every version of
// miplc; different arguments give independent numbers.
//
// The generator is ChaCha8, keyed by the SHA-256 of the arguments. It is not
// safe for concurrent use.
func New(seed uint64, name string, index ...uint64) *rand.Rand {
	return rand.New(rand.NewChaCha8(key(seed, name, index...)))
}

// key returns the key of the stream that New returns. Its text is
// seed, length of the name, name, indices; numbers as 8 bytes, little-endian.
func key(seed uint64, name string, index ...uint64) [32]byte {
	text := binary.LittleEndian.AppendUint64(nil, seed)
	text = binary.LittleEndian.AppendUint64(text, uint64(len(name)))
	text = append(text, name...)
	for _, i := range index {
		text = binary.LittleEndian.AppendUint64(text, i)
	}
	return sha256.Sum256(text)
}
