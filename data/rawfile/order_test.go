// Byte orders, cut files and limits of MAT files.

package rawfile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/miplc/miplc/internal/resources"
)

// bigEndian returns a file as old workstations wrote it: a 1x2 array of doubles, stored as 16-bit
// numbers in a small element, and a single.
func bigEndian() []byte {
	be := binary.BigEndian
	b := append(bytes.Repeat([]byte("x"), 124), 1, 0, 'M', 'I')
	tag := func(typ, size uint32) { b = be.AppendUint32(be.AppendUint32(b, typ), size) }
	array := func(class uint32, columns uint32, name string, data []byte) {
		tag(miMATRIX, 16+16+8+uint32(len(data)))
		tag(miUINT32, 8)
		tag(class, 0)
		tag(miINT32, 8)
		tag(1, columns)
		b = be.AppendUint32(b, uint32(len(name))<<16|miINT8)
		b = append(b, (name + "\x00\x00\x00\x00")[:4]...)
		b = append(b, data...)
	}
	small := be.AppendUint32(nil, 4<<16|miINT16)
	small = be.AppendUint16(be.AppendUint16(small, 7), 0xfffe)
	array(uint32(MATDouble), 2, "x", small)
	single := be.AppendUint32(be.AppendUint32(nil, miSINGLE), 4)
	single = be.AppendUint32(be.AppendUint32(single, math.Float32bits(0.75)), 0) // and padding
	array(uint32(MATSingle), 1, "yy", single)
	return b
}

func TestBigEndian(t *testing.T) {
	got, err := ReadMAT(bytes.NewReader(bigEndian()), FixedLimit("the file", 1<<20))
	if err != nil {
		t.Fatal(err)
	}
	want := []*MATArray{
		{Name: "x", Class: MATDouble, Dims: []int{1, 2}, Numbers: []float64{7, -2}},
		{Name: "yy", Class: MATSingle, Dims: []int{1, 1}, Numbers: []float64{0.75}},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %s and %s", show(got[0]), show(got[1]))
	}
}

// Every prefix of a file is a shorter file or an error, never a panic. A file cut inside a variable
// is not read as complete.
func TestPrefixes(t *testing.T) {
	whole := bigEndian()
	variable := 128 + 8 + 48 // end of the first variable
	for n := range whole {
		vars, err := ReadMAT(bytes.NewReader(whole[:n]), FixedLimit("the file", 1<<20))
		if complete := n == 128 || n == variable; complete != (err == nil) {
			t.Errorf("%d of %d bytes: %d variables, %v", n, len(whole), len(vars), err)
		}
	}
}

func TestMATLimit(t *testing.T) {
	_, err := ReadMAT(bytes.NewReader(bigEndian()), FixedLimit("the file", 100))
	if _, ok := errors.AsType[*resources.MemoryError](err); !ok {
		t.Errorf("a limit of 100 bytes: %v", err)
	}
}

// Deeply nested cells give an error instead of a stack overflow.
func TestDeepCells(t *testing.T) {
	le := binary.LittleEndian
	var inner []byte
	for range 40 {
		var b []byte
		for _, w := range []uint32{miUINT32, 8, uint32(MATCell), 0, miINT32, 8, 1, 1, miINT8, 0} {
			b = le.AppendUint32(b, w)
		}
		b = append(b, inner...)
		inner = append(le.AppendUint32(le.AppendUint32(nil, miMATRIX), uint32(len(b))), b...)
	}
	file := append(append(bytes.Repeat([]byte("x"), 124), 0, 1, 'I', 'M'), inner...)
	_, err := ReadMAT(bytes.NewReader(file), FixedLimit("the file", 1<<20))
	if err == nil || !strings.Contains(err.Error(), "nested more than 16 deep") {
		t.Errorf("deep cells: %v", err)
	}
}
