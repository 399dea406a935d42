// Groups and their members.

package hdf5

import (
	"bytes"
	"errors"
)

// member is a link of a group: the address of an object header, or the path of a soft link.
type member struct {
	address uint64
	target  string // relative to the group, or absolute; empty: not a soft link
}

// members returns the links of a group by name. External links are left out.
func (f *File) members(address uint64) (map[string]member, error) {
	if m, ok := f.groups[address]; ok {
		return m, nil
	}
	s := f.newScan()
	messages, err := s.header(address)
	if err != nil {
		return nil, err
	}
	g := &groupReader{scan: s, members: map[string]member{}}
	isGroup := false
	for _, m := range messages {
		switch m.kind {
		case msgSymbolTable:
			isGroup, err = true, g.symbolTable(m.data)
		case msgLinkInfo:
			isGroup, err = true, linkInfo(m.data)
		case msgLink:
			isGroup, err = true, g.link(m.data)
		}
		if err != nil {
			return nil, err
		}
	}
	if !isGroup {
		return nil, errors.New("is a dataset, not a group")
	}
	f.groups[address] = g.members
	return g.members, nil
}

// groupReader collects the members of a group.
type groupReader struct {
	*scan
	members map[string]member
	names   []byte // the heap with the names of a symbol table, and the targets of its soft links
}

// symbolTable reads the group of files in the default format: a tree of symbol nodes, and
// a heap with the names.
func (g *groupReader) symbolTable(b []byte) error {
	if len(b) < 16 {
		return errDamaged
	}
	heap, err := g.read(le.Uint64(b[8:]), 32)
	if err != nil {
		return err
	}
	if string(heap[:4]) != "HEAP" {
		return errDamaged
	}
	if g.names, err = g.read(le.Uint64(heap[24:]), le.Uint64(heap[8:])); err != nil {
		return err
	}
	const keySize = 8
	return g.tree(le.Uint64(b), keySize, func(_ []byte, node uint64) error { return g.symbols(node) })
}

// symbols reads the entries of a symbol node.
func (g *groupReader) symbols(address uint64) error {
	const size, softLink = 40, 2
	b, err := g.read(address, 8)
	if err != nil {
		return err
	}
	if string(b[:4]) != "SNOD" {
		return errDamaged
	}
	if b, err = g.read(address+8, size*uint64(le.Uint16(b[6:]))); err != nil {
		return err
	}
	for ; len(b) > 0; b = b[size:] {
		name, err := g.text(le.Uint64(b))
		if err != nil {
			return err
		}
		m := member{address: le.Uint64(b[8:])}
		if le.Uint32(b[16:]) == softLink {
			if m.target, err = g.text(uint64(le.Uint32(b[24:]))); err != nil {
				return err
			}
		}
		g.members[name] = m
	}
	return nil
}

// text copies a text of the heap.
func (g *groupReader) text(at uint64) (string, error) {
	if at >= uint64(len(g.names)) {
		return "", errDamaged
	}
	text, _, ok := bytes.Cut(g.names[at:], []byte{0})
	if !ok || uint64(len(text)) > g.left {
		return "", errDamaged
	}
	g.left -= uint64(len(text)) // entries may share a text, which is copied
	return string(text), nil
}

// link reads a link message, as groups of newer files have for each member.
func (g *groupReader) link(b []byte) error {
	const kindFlag, orderFlag, charsetFlag = 8, 4, 16
	const hard, soft = 0, 1
	f := &fields{rest: b}
	version, flags, kind := f.number(1), f.number(1), uint64(hard)
	if flags&kindFlag != 0 {
		kind = f.number(1)
	}
	if flags&orderFlag != 0 {
		f.next(8)
	}
	if flags&charsetFlag != 0 {
		f.next(1)
	}
	name, m := string(f.next(f.number(1<<(flags&3)))), member{}
	switch kind {
	case hard:
		m.address = f.number(8)
	case soft:
		m.target = string(f.next(f.number(2)))
	default:
		return nil
	}
	if version != 1 || f.short || kind == soft && m.target == "" {
		return errDamaged
	}
	g.members[name] = m
	return nil
}

// linkInfo refuses the links of a large group of newer files, which are in a heap. Those of a small one are messages.
func linkInfo(b []byte) error {
	const orderFlag = 1
	f := &fields{rest: b}
	f.next(1)
	if f.number(1)&orderFlag != 0 { // the creation order is kept
		f.next(8)
	}
	switch heap := f.number(8); {
	case f.short:
		return errDamaged
	case heap != undefined:
		return errors.New("its list of members has a form of newer versions of HDF5, which is not supported; " + rewrite)
	}
	return nil
}
