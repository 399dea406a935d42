// The identities of a dataset and of a split.

package data

import (
	"bufio"
	"crypto/sha256"
	"encoding"
	"encoding/binary"
	"encoding/hex"
	"hash"
	"io"
	"math"
	"slices"
)

// Hash returns the SHA-256 of the contents in hexadecimal. It does not depend on Name, BagNames and
// the file format: the shape of an instance counts only by its number of features (CSV has no
// shapes), labels that are all unknown count as no labels, and unnamed classes count as named by
// their numbers from 0.
func (d *Dataset) Hash() string {
	sum := d.startHash()
	w := bufio.NewWriterSize(sum, 1<<16)
	w.Write(d.Candidates)
	writeLabels(w, d.Labels)
	if d.Multi { // its candidates are true labels
		io.WriteString(w, "multi")
	}
	writeLabels(w, d.InstLabels)
	for c := range d.Classes {
		name := d.ClassName(c)
		writeInts(w, len(name))
		io.WriteString(w, name)
	}
	w.Flush()
	return hex.EncodeToString(sum.Sum(nil))
}

// HashOfInstances is the SHA-256 of the instances and the number of classes. It is equal for the same bags
// with other labels and candidates.
func (d *Dataset) HashOfInstances() string { return hex.EncodeToString(d.startHash().Sum(nil)) }

// Hash returns the SHA-256, in hexadecimal, of the bags of all parts.
func (s *Split) Hash() string {
	sum := sha256.New()
	parts := [][]int{s.Train, s.Test}
	if len(s.Validation) > 0 {
		parts = append(parts, s.Validation)
	}
	for _, bags := range parts {
		writeInts(sum, len(bags))
		writeInts(sum, bags...)
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// startHash returns the hash of the instances and of the fields that precede them.
func (d *Dataset) startHash() hash.Hash {
	sum := sha256.New()
	if d.OnDisk() && d.Source == "" {
		// HashStored has hashed the instances. A state of this process is valid.
		if err := sum.(encoding.BinaryUnmarshaler).UnmarshalBinary(d.storedHash); err != nil {
			panic(err)
		}
		return sum
	}
	d.hashStart(sum)
	if d.Source == "" {
		hashFloats(sum, d.Instances)
	}
	return sum
}

// hashStart hashes the fields that precede the instances. A source is hashed in place of the shape and the values of
// the instances.
func (d *Dataset) hashStart(sum io.Writer) {
	w := bufio.NewWriterSize(sum, 1<<16)
	if d.Source != "" {
		io.WriteString(w, "miplc computed data set 1\n")
		writeInts(w, d.Bags(), d.Classes)
		writeInts(w, d.Offsets...)
		writeInts(w, len(d.Source))
		io.WriteString(w, d.Source)
	} else {
		io.WriteString(w, "miplc data set 1\n")
		writeInts(w, d.Bags(), d.Dim(), d.Classes)
		writeInts(w, d.Offsets...)
	}
	w.Flush()
}

func hashFloats(sum io.Writer, values []float32) {
	buffer := make([]byte, 0, 1<<16)
	for part := range slices.Chunk(values, cap(buffer)/4) {
		buffer = buffer[:0]
		for _, x := range part {
			buffer = binary.LittleEndian.AppendUint32(buffer, math.Float32bits(x))
		}
		sum.Write(buffer)
	}
}

// HashCache keeps states of hashes of datasets on disk. start is the hash of the fields that precede
// the instances.
type HashCache interface {
	Get(start []byte) (state []byte) // nil: not in the cache
	Put(start, state []byte)
}

// HashStored reads all bags of a dataset on disk and keeps the state of the hash after their
// instances, so that Hash and HashOfInstances need not read them again. If the cache contains the state,
// no bag is read; the cache may be nil. Call it once after Store and Offsets are set.
func (d *Dataset) HashStored(cache HashCache) error {
	if d.Source != "" {
		return nil
	}
	sum := sha256.New()
	d.hashStart(sum)
	start := sum.Sum(nil)
	if cache != nil {
		state := cache.Get(start)
		if state != nil && sha256.New().(encoding.BinaryUnmarshaler).UnmarshalBinary(state) == nil {
			d.storedHash = state
			return nil
		}
	}
	err := d.Each(d.AllBags(), func(_ int, x []float32) error {
		hashFloats(sum, x)
		return nil
	})
	if err != nil {
		return err
	}
	d.storedHash, err = sum.(encoding.BinaryMarshaler).MarshalBinary()
	if err == nil && cache != nil {
		cache.Put(start, d.storedHash)
	}
	return err
}

// writeInts writes numbers as 8 bytes each. w must not fail, as hashes do not.
func writeInts(w io.Writer, numbers ...int) {
	var buf [8]byte
	for _, n := range numbers {
		binary.LittleEndian.PutUint64(buf[:], uint64(n))
		w.Write(buf[:])
	}
}

func writeLabels(w io.Writer, labels []int) {
	if !AnyKnown(labels) {
		labels = nil
	}
	writeInts(w, len(labels))
	writeInts(w, labels...)
}

// AnyKnown reports whether a label is not -1, which means unknown.
func AnyKnown(labels []int) bool {
	return slices.ContainsFunc(labels, func(c int) bool { return c >= 0 })
}
