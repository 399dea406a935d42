// Benchmarks. For each set:
//
//	go test ./compile/native/kernel -run '^$' -bench . -cpu 1

package kernel

import (
	"fmt"
	"testing"
	"unsafe"
)

// size is that of a product: a [m,k] or transposed, b [k,n].
type size struct {
	m, k, n    int
	transposed bool
}

func BenchmarkGemm(b *testing.B) {
	for _, d := range []size{
		{37, 38, 13, false}, {37, 13, 128, false}, {37, 128, 13, false}, {13, 37, 128, true}, {38, 37, 13, true},
		{37, 38, 128, false}, {37, 128, 38, false}, {1, 37, 38, false}, {1, 128, 128, false}, {37, 128, 1, false},
		{50, 500, 64, false}, {20, 25, 576, false}, {500, 50, 64, true}, {41, 800, 500, false}, {800, 41, 500, true},
		{512, 512, 512, false}, {512, 20000, 128, true},
	} {
		x, y, z := make([]float32, d.m*d.k), make([]float32, d.k*d.n), make([]float32, d.m*d.n)
		for i := range x {
			x[i] = float32(i%17) / 16
		}
		for i := range y {
			y[i] = float32(i%13) / 16
		}
		args := Args{Dst: unsafe.Pointer(&z[0]), A: unsafe.Pointer(&x[0]), B: unsafe.Pointer(&y[0]), M: d.m, N: d.n, K: d.k,
			SD: elem * d.n, SA: elem * d.k, TA: elem, SB: elem * d.n}
		if d.transposed {
			args.SA, args.TA = elem, elem*d.m
		}
		for _, s := range Sets() {
			b.Run(fmt.Sprintf("%s/%dx%dx%d", s.Name, d.m, d.k, d.n), func(b *testing.B) {
				for range b.N {
					s.Run[Gemm](&args)
				}
				b.ReportMetric(2*float64(d.m)*float64(d.k)*float64(d.n)*float64(b.N)/float64(b.Elapsed().Nanoseconds()), "GFLOP/s")
			})
		}
	}
}

// BenchmarkElements reports the time for each number: of 4,096 in the cache, and of a row of 37.
func BenchmarkElements(b *testing.B) {
	for k := range NumKernels {
		l := k.layout()
		if l.dst != line && l.dst != matrix || k == Gemm {
			continue
		}
		for _, n := range []int{37, 4096} {
			x, y, z, c := make([]float32, 4096), make([]float32, 4096), make([]float32, 4096), float32(0.5)
			for i := range x {
				x[i], y[i] = float32(i-2048)/40, float32(i%100)/30+0.1
			}
			if k == Log || k == Sqrt {
				x = y
			}
			args := Args{Dst: unsafe.Pointer(&z[0]), A: unsafe.Pointer(&x[0]), B: unsafe.Pointer(&y[0]),
				C: unsafe.Pointer(&c), M: 1, N: n}
			for _, s := range Sets() {
				b.Run(fmt.Sprintf("%s/%v/%d", s.Name, k, n), func(b *testing.B) {
					for range b.N {
						s.Run[k](&args)
					}
					b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/number")
				})
			}
		}
	}
}

// BenchmarkRows runs kernels of rows on matrices of training steps.
func BenchmarkRows(b *testing.B) {
	for _, k := range []Kernel{SumRows, SumCols, MaxCols, Gemv, Softmax, LogSoftmax, Transpose, AddVV, AddVS} {
		for _, d := range [][2]int{{37, 13}, {37, 38}, {37, 128}, {1, 37}} {
			m, n := d[0], d[1]
			x, y, z := make([]float32, m*n), make([]float32, m*n), make([]float32, m*n)
			args := Args{Dst: unsafe.Pointer(&z[0]), A: unsafe.Pointer(&x[0]), B: unsafe.Pointer(&y[0]),
				M: m, N: n, SD: elem * n, SA: elem * n, SB: elem * n}
			if k == Transpose {
				args.SD = elem * m
			}
			for _, s := range Sets() {
				b.Run(fmt.Sprintf("%s/%v/%dx%d", s.Name, k, m, n), func(b *testing.B) {
					for range b.N {
						s.Run[k](&args)
					}
				})
			}
		}
	}
}
