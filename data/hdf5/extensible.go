// Chunks in an extensible array.

package hdf5

// extensible is an extensible array, the index of chunks that newer files have if a dataset can grow
// along one axis. The first elements are in its index block, others in data blocks of growing sizes.
// Addresses of the first data blocks are in the index block, others in secondary blocks.
type extensible struct {
	*datasetReader
	size   uint64 // of an element
	filled uint64 // index after the last element that was written
	least  uint64 // elements of the smallest data block
	page   uint64 // most elements of a data block without pages
	prefix uint64 // of a data block
	next   uint64 // index of the next element
}

// extensibleArray reads the array with its header at an address.
func (r *datasetReader) extensibleArray(address uint64) error {
	const headerSize = 72
	head, err := r.read(address, headerSize)
	if err != nil {
		return err
	}
	if string(head[:4]) != "EAHD" || head[4] != 0 || !elementSize(head[5], head[6]) {
		return errDamaged
	}
	space, inIndex, pointers := int(head[7]), uint64(head[8]), uint64(head[10])
	e := &extensible{datasetReader: r, size: uint64(head[6]), least: uint64(head[9]), filled: le.Uint64(head[44:])}
	if !power(e.least) || !power(pointers) || pointers < 2 || space > 64 || space < log2(e.least) || head[11] > 31 {
		return errDamaged
	}
	e.page, e.prefix = 1<<head[11], uint64(14+(space+7)/8)
	at := le.Uint64(head[60:])
	if at == undefined {
		return nil // nothing was written
	}
	const indexPrefix = 14
	if b, err := r.read(at, 4); err != nil || string(b) != "EAIB" {
		return errDamaged
	}
	if err := e.elements(at+indexPrefix, inIndex); err != nil {
		return err
	}
	direct, levels := 2*(pointers-1), 1+space-log2(e.least)
	at += indexPrefix + inIndex*e.size
	for level := range levels {
		blocks := uint64(1) << (level / 2)
		if level < 2*log2(pointers) {
			if direct < blocks {
				return errDamaged
			}
			if err := e.blocks(at, level, nil); err != nil {
				return err
			}
			at, direct = at+8*blocks, direct-blocks
		} else {
			if err := e.secondary(at, level); err != nil {
				return err
			}
			at += 8
		}
		if e.next >= e.filled {
			break
		}
	}
	return nil
}

// elementSize reports whether the elements of an array of chunks, with filters if client is 1, can
// have a size.
func elementSize(client, size byte) bool {
	return client == 0 && size == 8 || client == 1 && 13 <= size && size <= 20
}

// elements reads up to n elements at an address.
func (e *extensible) elements(address, n uint64) error {
	err := e.datasetReader.elements(address, e.next, min(n, e.filled-min(e.next, e.filled)), e.size)
	e.next += n
	return err
}

// secondary reads the secondary block of a level whose address is at at.
func (e *extensible) secondary(at uint64, level int) error {
	b, err := e.read(at, 8)
	if err != nil {
		return err
	}
	blocks, n := uint64(1)<<(level/2), e.least<<((level+1)/2)
	address := le.Uint64(b)
	if address == undefined {
		e.next += blocks * n
		return nil
	}
	if b, err = e.read(address, 4); err != nil || string(b) != "EASB" {
		return errDamaged
	}
	var written []byte // a bit for each page of all blocks
	if n > e.page {
		if written, err = e.read(address+e.prefix, blocks*((n/e.page+7)/8)); err != nil {
			return err
		}
	}
	return e.blocks(address+e.prefix+uint64(len(written)), level, written)
}

// blocks reads the data blocks of a level whose addresses are at at.
func (e *extensible) blocks(at uint64, level int, written []byte) error {
	blocks, n := uint64(1)<<(level/2), e.least<<((level+1)/2)
	addresses, err := e.read(at, 8*blocks)
	if err != nil {
		return err
	}
	for i := range blocks {
		address := le.Uint64(addresses[8*i:])
		if e.next >= e.filled {
			return nil
		}
		if address == undefined {
			e.next += n
			continue
		}
		if b, err := e.read(address, 4); err != nil || string(b) != "EADB" {
			return errDamaged
		}
		if n <= e.page {
			err = e.elements(address+e.prefix, n)
		} else {
			err = e.pages(address+e.prefix, n/e.page, i*(n/e.page), written)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// pages reads n pages of a data block. The bit number first of written is that of the first page.
func (e *extensible) pages(address, n, first uint64, written []byte) error {
	const checksum = 4
	at := address + checksum
	for i := first; i < first+n; i++ {
		if i/8 >= uint64(len(written)) {
			return errDamaged
		}
		if written[i/8]&(0x80>>(i%8)) == 0 {
			e.next += e.page
		} else if err := e.elements(at, e.page); err != nil {
			return err
		}
		at += e.page*e.size + checksum
	}
	return nil
}
