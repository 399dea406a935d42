// Reading of npy arrays.

package bagfile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/miplc/miplc/internal/fileio"
	"github.com/miplc/miplc/internal/ndarray"
)

// npyMagic is the start of an .npy file.
const npyMagic = "\x93NUMPY"

// Libraries for .npy files trust the header. This reader checks every length of the header, and
// allocates memory only for data that it has read, because files may come from anywhere.

// npyHeader is the header of an .npy array.
type npyHeader struct {
	order   binary.ByteOrder
	code    byte             // type code of NumPy: f, i, u, b, U or S
	number  ndarray.Encoding // of elements that are not text
	size    int              // bytes of an element
	fortran bool             // column-major order
	shape   []int
	count   int // elements
}

const maxNpyHeader = 1 << 16

var (
	npyDescr   = regexp.MustCompile(`'descr'\s*:\s*'([^']*)'`)
	npyFortran = regexp.MustCompile(`'fortran_order'\s*:\s*(True|False)`)
	npyShape   = regexp.MustCompile(`'shape'\s*:\s*\(([0-9,\s]*)\)`)
	npyType    = regexp.MustCompile(`^([<>|=]?)([fiubUS])([0-9]{1,9})$`)
)

func readNpyHeader(r io.Reader) (*npyHeader, error) {
	var start [12]byte // magic number, version, length of 2 or 4 bytes
	if _, err := io.ReadFull(r, start[:8]); err != nil {
		return nil, fileio.CutShort(err)
	}
	length := start[8:10]
	switch version := start[6]; {
	case string(start[:6]) != npyMagic:
		return nil, errors.New("not a NumPy array (wrong magic number)")
	case version < 1 || version > 3:
		return nil, fmt.Errorf("NumPy format version %d is not known", version)
	case version > 1:
		length = start[8:]
	}
	if _, err := io.ReadFull(r, length); err != nil {
		return nil, fileio.CutShort(err)
	}
	n := binary.LittleEndian.Uint32(start[8:])
	if n > maxNpyHeader {
		return nil, fmt.Errorf("the header claims %d bytes; at most %d are read", n, maxNpyHeader)
	}
	text := make([]byte, n)
	if _, err := io.ReadFull(r, text); err != nil {
		return nil, fileio.CutShort(err)
	}
	return parseNpyHeader(string(text))
}

func parseNpyHeader(text string) (*npyHeader, error) {
	descr := npyDescr.FindStringSubmatch(text)
	fortran := npyFortran.FindStringSubmatch(text)
	shape := npyShape.FindStringSubmatch(text)
	if descr == nil || fortran == nil || shape == nil {
		return nil, errors.New("the header does not give 'descr', 'fortran_order' and 'shape' of a plain array")
	}
	h := &npyHeader{order: binary.LittleEndian, fortran: fortran[1] == "True"}
	typ := npyType.FindStringSubmatch(descr[1])
	if typ == nil {
		return nil, unreadType(descr[1])
	}
	if typ[1] == ">" {
		h.order = binary.BigEndian
	}
	h.code = typ[2][0]
	h.size, _ = strconv.Atoi(typ[3])
	switch {
	case h.text() && h.size > 1<<16:
		return nil, fmt.Errorf("strings of %d characters are too long", h.size)
	case h.code == 'U':
		h.size *= 4 // UTF-32
	case !h.text():
		h.number = ndarray.Encoding{Kind: ndarray.Kind(h.code), Size: h.size, Swap: h.order == binary.BigEndian}
		if h.code == 'b' && h.size == 1 { // true or false
			h.number.Kind = ndarray.Uint
		}
		if h.code == 'b' && h.size > 1 || !h.number.Valid() {
			return nil, unreadType(descr[1])
		}
	}
	for e := range strings.SplitSeq(shape[1], ",") {
		if e = strings.TrimSpace(e); e == "" {
			continue
		}
		n, err := strconv.Atoi(e)
		if err != nil {
			return nil, fmt.Errorf("the extent %s is too large", e)
		}
		h.shape = append(h.shape, n)
	}
	count, ok := ndarray.SizeWithin(h.shape, math.MaxInt)
	if !ok || h.size > 0 && count > math.MaxInt/h.size {
		return nil, fmt.Errorf("the shape %v is too large", h.shape)
	}
	h.count = count
	return h, nil
}

func unreadType(descr string) error {
	return fmt.Errorf("elements of type %q are not supported; save numbers as float32 or int64, text with dtype=str",
		descr)
}

// text reports whether the elements are text.
func (h *npyHeader) text() bool { return h.code == 'U' || h.code == 'S' }

// bytes returns the size of the elements in the file.
func (h *npyHeader) bytes() int64 { return int64(h.count) * int64(h.size) }

// cost returns the approximate memory of the decoded elements in bytes.
func (h *npyHeader) cost() int64 {
	each := int64(max(h.size, 8))
	switch {
	case h.code == 'f' && h.size <= 4:
		each = 4
	case h.text():
		each = int64(h.size) + 32
	}
	if int64(h.count) > math.MaxInt64/each {
		return math.MaxInt64
	}
	return int64(h.count) * each
}

// each calls f with the bytes of every element in the order of the file.
func (h *npyHeader) each(r io.Reader, f func(element []byte)) error {
	return h.blocks(r, func(part []byte) {
		for ; len(part) > 0; part = part[h.size:] {
			f(part[:h.size])
		}
	})
}

// blocks calls f with the bytes of several elements at a time.
func (h *npyHeader) blocks(r io.Reader, f func(part []byte)) error {
	if h.size == 0 {
		return nil // strings of no characters
	}
	const block = 1 << 16
	buf := make([]byte, max(block/h.size, 1)*h.size)
	for left := h.bytes(); left > 0; {
		part := buf[:min(int64(len(buf)), left)]
		if _, err := io.ReadFull(r, part); err != nil {
			return fileio.CutShort(err)
		}
		f(part)
		left -= int64(len(part))
	}
	return nil
}

// firstGuess returns the initial capacity for n elements: enough for usual datasets, and small for
// wrong headers.
func firstGuess(n int) int { return min(n, 1<<20) }

// floats reads numbers of any type as float32, row-major. watch, if not nil, is called with the bytes of
// several elements in the order of the file, and with the number of elements before them.
func (h *npyHeader) floats(r io.Reader, watch func(part []byte, before int)) ([]float32, error) {
	if h.text() {
		return nil, errors.New("contains text where numbers are needed")
	}
	out := make([]float32, 0, firstGuess(h.count))
	err := h.blocks(r, func(part []byte) {
		n := len(part) / h.size
		if watch != nil {
			watch(part, len(out))
		}
		out = slices.Grow(out, n)[:len(out)+n]
		h.number.Floats(out[len(out)-n:], part)
	})
	if err != nil {
		return nil, err
	}
	return rowMajor(h, out), nil
}

// ints reads whole numbers of any type, row-major. what describes them in messages.
func (h *npyHeader) ints(r io.Reader, what string) ([]int, error) {
	if h.text() {
		return nil, fmt.Errorf("contains text instead of whole numbers: %s", what)
	}
	out := make([]int, 0, firstGuess(h.count))
	bad := 0.0
	err := h.each(r, func(b []byte) {
		if h.code != 'f' {
			out = append(out, int(h.number.Int(b)))
			return
		}
		x := h.number.Float(b)
		if x != math.Trunc(x) || math.Abs(x) > 1<<53 {
			bad = x
		}
		out = append(out, int(x))
	})
	if err != nil {
		return nil, err
	}
	if bad != 0 {
		return nil, fmt.Errorf("contains %v instead of whole numbers: %s", bad, what)
	}
	return rowMajor(h, out), nil
}

// strings reads text: the unicode type of NumPy, or bytes in UTF-8.
func (h *npyHeader) strings(r io.Reader) ([]string, error) {
	if !h.text() {
		return nil, errors.New("contains numbers instead of text")
	}
	if h.size == 0 && h.count > 0 {
		return nil, errors.New("contains only empty text")
	}
	var out []string
	bad := false
	err := h.each(r, func(b []byte) {
		if h.code == 'S' {
			out = append(out, string(bytes.TrimRight(b, "\x00")))
			return
		}
		var s []byte
		for i := 0; i < len(b); i += 4 {
			c := h.order.Uint32(b[i:])
			if c == 0 {
				break
			}
			if c > utf8.MaxRune || !utf8.ValidRune(rune(c)) {
				bad = true
				break
			}
			s = utf8.AppendRune(s, rune(c))
		}
		out = append(out, string(s))
	})
	if bad && err == nil {
		err = errors.New("contains text that is not Unicode")
	}
	return out, err
}

// rowMajor converts elements in column-major order to row-major order.
func rowMajor[T any](h *npyHeader, in []T) []T {
	if !h.fortran || len(h.shape) < 2 || len(in) == 0 {
		return in
	}
	stride, size := make([]int, len(h.shape)), 1 // in the file
	for i, e := range h.shape {
		stride[i], size = size, size*e
	}
	out, loops := make([]T, len(in)), ndarray.NewLoops(h.shape, ndarray.Strides(h.shape), stride)
	step := loops.Step()
	loops.Each(func(at [3]int) {
		for i := range loops.Length() {
			out[at[0]+i*step[0]] = in[at[1]+i*step[1]]
		}
	})
	return out
}

// npyStart returns the header of a row-major little-endian array, version 1.0. Its padding aligns
// the data to 64 bytes.
func npyStart(descr string, shape ...int) []byte {
	dims := make([]string, len(shape))
	for i, e := range shape {
		dims[i] = strconv.Itoa(e)
	}
	tuple := strings.Join(dims, ", ")
	if len(shape) == 1 {
		tuple += ","
	}
	text := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': (%s), }", descr, tuple)
	text += strings.Repeat(" ", 63-(10+len(text))%64) + "\n"
	out := append([]byte(npyMagic+"\x01\x00"), byte(len(text)), byte(len(text)>>8))
	return append(out, text...)
}
