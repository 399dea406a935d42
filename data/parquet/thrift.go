package parquet

import "encoding/binary"

// thrift decodes the compact protocol of Apache Thrift, in which Parquet stores its metadata. After
// the first error all methods return zero values, and failed is true.
type thrift struct {
	b      []byte
	depth  int
	failed bool
}

// Types of the compact protocol. The type of a boolean field is its value.
const (
	thriftTrue   = 1
	thriftFalse  = 2
	thriftByte   = 3
	thriftInt64  = 6
	thriftDouble = 7
	thriftBinary = 8
	thriftList   = 9
	thriftSet    = 10
	thriftMap    = 11
	thriftStruct = 12
)

func (t *thrift) fail() { t.b, t.failed = nil, true }

func (t *thrift) bytes(n uint64) []byte {
	if n > uint64(len(t.b)) {
		t.fail()
		return nil
	}
	out := t.b[:n]
	t.b = t.b[n:]
	return out
}

func (t *thrift) byte() byte {
	if b := t.bytes(1); b != nil {
		return b[0]
	}
	return 0
}

func (t *thrift) uvarint() uint64 {
	v, n := binary.Uvarint(t.b)
	if n <= 0 {
		t.fail()
		return 0
	}
	t.b = t.b[n:]
	return v
}

// object calls field for each field of a struct. field must read the value.
func (t *thrift) object(field func(id int, kind byte)) {
	const maxDepth = 32
	if t.depth++; t.depth > maxDepth {
		t.fail()
	}
	for id := 0; !t.failed; {
		header := t.byte()
		kind := header & 15
		if kind == 0 {
			break
		}
		if delta := int(header >> 4); delta > 0 {
			id += delta
		} else {
			id = int(int16(t.zigzag()))
		}
		field(id, kind)
	}
	t.depth--
}

// list calls element for each element of a list.
func (t *thrift) list(kind byte, element func(kind byte)) {
	if kind != thriftList && kind != thriftSet {
		t.fail()
		return
	}
	header := t.byte()
	n := uint64(header >> 4)
	if n == 15 {
		n = t.uvarint()
	}
	for ; n > 0 && !t.failed; n-- {
		if kind := header & 15; kind == thriftTrue || kind == thriftFalse {
			t.byte()
		} else {
			element(kind)
		}
	}
}

func (t *thrift) zigzag() int64 {
	v := t.uvarint()
	return int64(v>>1) ^ -int64(v&1)
}

// int reads an integer or a boolean.
func (t *thrift) int(kind byte) int64 {
	switch {
	case kind == thriftTrue:
		return 1
	case kind == thriftFalse:
		return 0
	case kind == thriftByte:
		return int64(t.byte())
	case kind <= thriftInt64:
		return t.zigzag()
	}
	t.fail()
	return 0
}

func (t *thrift) text(kind byte) string {
	if kind != thriftBinary {
		t.fail()
		return ""
	}
	return string(t.bytes(t.uvarint()))
}

// skip reads a value that is not needed.
func (t *thrift) skip(kind byte) {
	switch kind {
	case thriftDouble:
		t.bytes(8)
	case thriftBinary:
		t.bytes(t.uvarint())
	case thriftStruct:
		t.object(func(_ int, kind byte) { t.skip(kind) })
	case thriftList, thriftSet:
		t.list(kind, t.skip)
	case thriftMap:
		t.skipMap()
	default:
		t.int(kind)
	}
}

func (t *thrift) skipMap() {
	n := t.uvarint()
	if n == 0 {
		return
	}
	kinds := t.byte()
	for ; n > 0 && !t.failed; n-- {
		for _, kind := range []byte{kinds >> 4, kinds & 15} {
			if kind == thriftTrue || kind == thriftFalse {
				kind = thriftByte
			}
			t.skip(kind)
		}
	}
}
