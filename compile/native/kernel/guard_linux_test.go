// Operands beside memory that faults.

package kernel

import (
	"runtime/debug"
	"slices"
	"syscall"
	"testing"
	"unsafe"
)

// guarded is memory between two pages that fault on access.
type guarded []byte

func newGuarded(t testing.TB, size int) guarded {
	page := syscall.Getpagesize()
	size = (size + page - 1) / page * page
	all, err := syscall.Mmap(-1, 0, size+2*page, syscall.PROT_READ|syscall.PROT_WRITE,
		syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { syscall.Munmap(all) })
	for _, guard := range [][]byte{all[:page], all[page+size:]} {
		if err := syscall.Mprotect(guard, syscall.PROT_NONE); err != nil {
			t.Fatal(err)
		}
	}
	return guarded(all[page : page+size])
}

func guardedMemory(t testing.TB) (mem [4]guarded) {
	for i := range mem {
		mem[i] = newGuarded(t, 1<<18)
	}
	return mem
}

// start returns the pointer to an operand of some bytes at the start of the memory.
func (g guarded) start(int) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(g)) }

// end returns the pointer to an operand of some bytes at the end of the memory.
func (g guarded) end(bytes int) unsafe.Pointer { return unsafe.Add(g.start(0), len(g)-bytes) }

// place returns the arguments of a call with pointers to its operands in four guarded memories.
func place(mem [4]guarded, k Kernel, a Args, at func(g guarded, bytes int) unsafe.Pointer) Args {
	d, x, y, z := k.Extent(&a)
	a.Dst, a.A, a.B = at(mem[0], d), at(mem[1], x), at(mem[2], y)
	if a.C != nil {
		a.C = at(mem[3], z)
	}
	writeSparse(k, &a)
	return a
}

// faults runs a kernel, and reports whether it touched a guard.
func faults(s *Set, k Kernel, a *Args) (fault bool) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() { fault = recover() != nil }()
	s.Run[k](a)
	return false
}

// TestGuards runs each call with its operands at the start and at the end of guarded memory, then each operand one
// number too close to its end: that must fault, or Extent is larger than what the kernel touches.
func TestGuards(t *testing.T) {
	mem := guardedMemory(t)
	for _, s := range Sets() {
		eachCall(func(k Kernel, a Args) {
			d, x, y, z := k.Extent(&a)
			extents := []int{d, x, y, z}
			atStart, atEnd := place(mem, k, a, guarded.start), place(mem, k, a, guarded.end)
			if faults(s, k, &atStart) {
				t.Fatalf("%s: touches memory before its operands", name(s, k, &a))
			}
			if faults(s, k, &atEnd) {
				t.Fatalf("%s: touches memory behind its operands", name(s, k, &a))
			}
			if a.M > 9 && a.N > 9 {
				return // faults are slow
			}
			for i, bytes := range extents {
				if bytes == 0 {
					continue
				}
				close := atEnd
				p := []*unsafe.Pointer{&close.Dst, &close.A, &close.B, &close.C}[i]
				*p = unsafe.Add(*p, elem)
				if !faults(s, k, &close) {
					t.Fatalf("%s: Extent is too large for operand %d", name(s, k, &a), i)
				}
			}
		})
	}
}

// FuzzCalls runs calls of random sizes and strides in guarded memory, and compares the bits of all sets.
func FuzzCalls(f *testing.F) {
	for k := range NumKernels {
		f.Add(byte(k), byte(9), byte(37), byte(5), uint64(k))
	}
	mem, values := guardedMemory(f), pool()
	f.Fuzz(func(t *testing.T, number, m, n, inner byte, bits uint64) {
		k := Kernel(number) % NumKernels
		a := Args{M: int(m % 80), N: int(n % 80), K: int(inner % 80), TA: elem}
		for i, stride := range []*int{&a.SD, &a.SA, &a.SB, &a.SC} {
			*stride = elem * (160 + int(bits>>(8*i)%80)) // rows of MaxOfFour have up to 158 numbers
		}
		if k == CopyBlocks { // no block of the result overlaps another one
			a.M, a.K = a.M%8, a.K%8
			a.TD, a.TA = a.M*a.SD+elem*int(bits>>40%9), elem*int(bits>>48%4096)
		}
		if bits>>32&1 == 1 {
			a.SA, a.TA = elem, a.SA
		}
		if bits>>33&1 == 1 || needsC(k) {
			a.C = mem[3].start(0)
		}
		switch k {
		case Gemm:
			if a.Then = int(bits >> 35 % 3); a.Then == ThenMask {
				a.C = mem[3].start(0)
			}
		case MaxOfFour:
			a.Then = int(bits >> 35 % 2 * ThenRelu)
		case MaxOfFourGrad:
			a.Then = int(bits >> 35 % 2 * ThenMask)
		case SparseGemm:
			a.TD = a.K % 32
			a.K = len(sparse(&a))
		}
		at := guarded.end
		if bits>>34&1 == 1 {
			at = guarded.start
		}
		args := place(mem, k, a, at)
		d, _, _, _ := k.Extent(&args)
		dst, want := numbers(args.Dst, d/elem), []float32(nil)
		for i := 1; i < len(mem); i++ {
			copy(numbers(mem[i].start(0), len(mem[i])/elem), values[bits>>(16*i)%1000:])
		}
		writeSparse(k, &args)
		for _, s := range slices.Backward(Sets()) {
			clear(dst)
			if faults(s, k, &args) {
				t.Fatalf("%s: touches memory outside of its operands", name(s, k, &args))
			}
			if want == nil {
				want = slices.Clone(dst)
			} else if at := different(dst, want); at >= 0 {
				t.Fatalf("%s: has %v at %d, plain Go has %v", name(s, k, &args), dst[at], at, want[at])
			}
		}
	})
}
