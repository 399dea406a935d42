// Chunks in a fixed array.

package hdf5

// fixedArray reads a fixed array, the index of chunks that newer files have if the dataset can grow
// up to limits, or not at all. Its elements are the chunks of the largest array in row-major order.
func (r *datasetReader) fixedArray(address uint64) error {
	const headerSize = 28
	head, err := r.read(address, headerSize)
	if err != nil {
		return err
	}
	size, pageBits := uint64(head[6]), head[7]
	n, at := le.Uint64(head[8:]), le.Uint64(head[16:])
	if string(head[:4]) != "FAHD" || head[4] != 0 || !elementSize(head[5], head[6]) || pageBits > 31 {
		return errDamaged
	}
	if at == undefined {
		return nil // nothing was written
	}
	// The data block has a prefix, a bitmap of the pages that exist if there are several, the
	// elements or a checksum, and the pages.
	prefix, page := uint64(14), uint64(1)<<pageBits
	block, err := r.read(at, prefix)
	if err != nil {
		return err
	}
	if string(block[:4]) != "FADB" || block[4] != 0 || block[5] != head[5] {
		return errDamaged
	}
	if n <= page {
		return r.elements(at+prefix, 0, n, size)
	}
	pages := (n + page - 1) / page
	bitmap, err := r.read(at+prefix, (pages+7)/8)
	if err != nil {
		return err
	}
	const checksum = 4
	at += prefix + uint64(len(bitmap)) + checksum
	for i := range pages {
		if bitmap[i/8]&(0x80>>(i%8)) != 0 {
			if err := r.elements(at, i*page, min(page, n-i*page), size); err != nil {
				return err
			}
		}
		at += page*size + checksum
	}
	return nil
}

// elements reads n elements of size bytes, starting with the chunk number first of the index.
func (r *datasetReader) elements(address, first, n, size uint64) error {
	if n > r.left {
		return errDamaged
	}
	b, err := r.read(address, n*size)
	if err != nil {
		return err
	}
	for i := range n {
		e := b[i*size : (i+1)*size]
		one := chunk{address: le.Uint64(e), size: uint32(r.chunks.bytes)}
		if size > 8 {
			one.size, one.mask = uint32(min(uint(e[8:size-4]), maxChunk+1)), le.Uint32(e[size-4:])
		}
		if one.address != undefined {
			r.add(one, r.coordinates(first+i))
		}
	}
	return nil
}

// coordinates returns the place of a chunk by its number in an array of chunks. The numbers are
// row-major in the largest array, with the axis without a limit first.
func (r *datasetReader) coordinates(number uint64) []uint64 {
	at := make([]uint64, len(r.chunks.shape))
	axis := func(i int) int { // with number i from the slowest to the fastest
		switch {
		case i == 0:
			return r.unlimited
		case i <= r.unlimited:
			return i - 1
		}
		return i
	}
	for i := len(at) - 1; i > 0; i-- {
		a := axis(i)
		n := max(1, (r.limits[a]-1)/uint64(r.chunks.shape[a])+1)
		at[a], number = number%n, number/n
	}
	at[r.unlimited] = number
	return at
}

// add adds a chunk by its place, unless it is left from before the dataset was made smaller.
func (r *datasetReader) add(one chunk, at []uint64) {
	for axis, extent := range r.chunks.shape {
		n := uint64(count(r.Shape[axis], extent))
		if at[axis] >= n {
			return
		}
		one.index = one.index*n + at[axis]
	}
	r.chunks.list = append(r.chunks.list, one)
}

// chunkTree reads the version 2 B-tree of chunks of a dataset that can grow along several axes.
func (r *datasetReader) chunkTree(address uint64) error {
	kind, fixed := byte(recordsChunks), 8
	if len(r.filters) > 0 {
		kind, fixed = recordsFiltered, 12
	}
	rank := len(r.chunks.shape)
	return r.btree2(address, kind, func(b []byte) error {
		sizeWidth := len(b) - fixed - 8*rank
		if sizeWidth < 0 || kind == recordsChunks && sizeWidth != 0 || sizeWidth > 8 {
			return errDamaged
		}
		one := chunk{address: le.Uint64(b), size: uint32(r.chunks.bytes)}
		if kind == recordsFiltered {
			one.size, one.mask = uint32(min(uint(b[8:8+sizeWidth]), maxChunk+1)), le.Uint32(b[8+sizeWidth:])
		}
		at := make([]uint64, rank)
		for axis := range at {
			at[axis] = le.Uint64(b[fixed+sizeWidth+8*axis:])
		}
		r.add(one, at)
		return nil
	})
}
