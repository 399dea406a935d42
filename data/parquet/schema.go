package parquet

import (
	"errors"
	"fmt"

	"github.com/miplc/miplc/internal/ndarray"
)

// element is a node of the schema, in depth-first order.
type element struct {
	name       string
	physical   int64 // of a leaf
	length     int64
	repetition int64
	children   int64
	converted  int64 // -1: none
	logical    int   // field of the union LogicalType; 0: none
	bits       int64 // of an integer
	unsigned   bool
}

// Physical types.
const (
	typeBool       = 0
	typeInt32      = 1
	typeInt64      = 2
	typeFloat      = 4
	typeDouble     = 5
	typeBytes      = 6
	typeFixedBytes = 7
)

const (
	optional = 1 // of FieldRepetitionType
	repeated = 2
)

func readElement(t *thrift) element {
	e := element{converted: -1}
	t.object(func(id int, kind byte) {
		switch id {
		case 1:
			e.physical = t.int(kind)
		case 2:
			e.length = t.int(kind)
		case 3:
			e.repetition = t.int(kind)
		case 4:
			e.name = t.text(kind)
		case 5:
			e.children = t.int(kind)
		case 6:
			e.converted = t.int(kind)
		case 10:
			e.readLogical(t, kind)
		default:
			t.skip(kind)
		}
	})
	return e
}

// readLogical reads a LogicalType.
func (e *element) readLogical(t *thrift, kind byte) {
	const integer = 10
	if kind != thriftStruct {
		t.fail()
		return
	}
	t.object(func(id int, kind byte) {
		if e.logical = id; id != integer || kind != thriftStruct {
			t.skip(kind)
			return
		}
		t.object(func(id int, kind byte) {
			switch id {
			case 1:
				e.bits = t.int(kind)
			case 2:
				e.unsigned = t.int(kind) == 0
			default:
				t.skip(kind)
			}
		})
	})
}

// schemaReader makes columns of the elements below the root.
type schemaReader struct {
	rest    []element
	columns []*Column
}

// column reads the next child of the root and the elements below.
func (s *schemaReader) column() error {
	first := len(s.columns)
	if len(s.rest) == 0 {
		return errDamaged
	}
	name := s.rest[0].name
	if err := s.node(0, 0, 0); err != nil {
		return err
	}
	added := s.columns[first:]
	for _, c := range added {
		if c.Name = name; len(added) > 1 {
			c.unsupported = errors.New("it contains nested values; numbers are needed")
		}
	}
	return nil
}

// node reads an element and those below it.
func (s *schemaReader) node(maxDef, maxRep, depth int) error {
	const maxDepth = 16
	if len(s.rest) == 0 || depth > maxDepth {
		return errDamaged
	}
	e := s.rest[0]
	s.rest = s.rest[1:]
	switch e.repetition {
	case optional:
		maxDef++
	case repeated:
		maxDef, maxRep = maxDef+1, maxRep+1
	}
	if e.children == 0 {
		c := &Column{List: maxRep > 0, index: len(s.columns), physical: e.physical, maxDef: maxDef, maxRep: maxRep}
		c.unsupported = c.setType(e)
		if maxRep > 1 {
			c.unsupported = errors.New("it contains lists of lists; numbers are needed")
		}
		s.columns = append(s.columns, c)
		return nil
	}
	for range e.children {
		if err := s.node(maxDef, maxRep, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// setType sets the type of the values.
func (c *Column) setType(e element) error {
	// The fields of LogicalType and the values of ConvertedType for the same meaning.
	others := map[int]string{5: "decimal numbers", 6: "dates", 7: "times", 8: "times"}
	converted := map[int64]string{5: "decimal numbers", 6: "dates", 7: "times", 8: "times", 9: "times", 10: "times"}
	const float16, uint8Type, uint64Type = 15, 11, 14
	for _, name := range []string{others[e.logical], converted[e.converted]} {
		if name != "" {
			return fmt.Errorf("it contains %s; numbers are needed", name)
		}
	}
	integer := ndarray.Int
	if e.unsigned && e.bits > 0 || e.converted >= uint8Type && e.converted <= uint64Type {
		integer = ndarray.Uint
	}
	switch e.physical {
	case typeBool:
		c.kind = ndarray.Number{Kind: ndarray.Uint, Size: 1}
	case typeInt32:
		c.kind = ndarray.Number{Kind: integer, Size: 4}
	case typeInt64:
		c.kind = ndarray.Number{Kind: integer, Size: 8}
	case typeFloat:
		c.kind = ndarray.Number{Kind: ndarray.Float, Size: 4}
	case typeDouble:
		c.kind = ndarray.Number{Kind: ndarray.Float, Size: 8}
	case typeBytes:
		c.Text = true
	case typeFixedBytes:
		if e.logical != float16 || e.length != 2 {
			return fmt.Errorf("it contains blocks of %d bytes; numbers are needed", e.length)
		}
		c.kind = ndarray.Number{Kind: ndarray.Float, Size: 2}
	default:
		return errors.New("it contains values of an outdated or unknown type; numbers are needed")
	}
	return nil
}
