// The sets for x86-64.

package kernel

import "golang.org/x/sys/cpu"

// vectorSets returns the sets of the instructions that the processor and the operating system support.
func vectorSets() (sets []*Set) {
	x := &cpu.X86
	if x.HasAVX2 && x.HasFMA && x.HasBMI2 {
		if x.HasAVX512F && x.HasAVX512DQ && x.HasAVX512VL && x.HasAVX512BW {
			sets = append(sets, avx512Set())
		}
		sets = append(sets, avx2Set())
	}
	return sets
}

func gemm512(a *Args) {
	var p product
	for p.start(a, 12); p.next(); {
		strip512(p.part.M, &p.part)
	}
}

func gemm256(a *Args) {
	var p product
	for p.start(a, 6); p.next(); {
		strip256(p.part.M, &p.part)
	}
}
