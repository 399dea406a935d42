// The set for arm64, whose processors all have NEON.

package kernel

func vectorSets() []*Set { return []*Set{neonSet()} }

func gemm128(a *Args) {
	var p product
	for p.start(a, 6); p.next(); {
		strip128(p.part.M, &p.part)
	}
}
