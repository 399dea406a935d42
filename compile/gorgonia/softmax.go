package gorgonia

import (
	"math"

	"github.com/miplc/miplc/graph"
	"gorgonia.org/gorgonia"
)

// shiftedExp gives the maximum m of x and the sum of exp(x - m).
func shiftedExp[T Float](x []T) (m, sum float64) {
	m = math.Inf(-1)
	for _, v := range x {
		m = math.Max(m, float64(v)) // keeps NaN
	}
	for _, v := range x {
		sum += exp[T](float64(v) - m)
	}
	return m, sum
}

// rowwise makes a kernel of a function of one row.
func rowwise[T Float](width int, f func(out []T, in [][]T, from, to int)) kernel[T] {
	return func(out []T, in [][]T, _ []int) {
		for at := 0; at < len(out); at += width {
			f(out[at:at+width], in, at, at+width)
		}
	}
}

// lowerSoftmax is exp(x) / sum exp(x) along the last axis.
func lowerSoftmax[T Float](l *lowerer[T], n *graph.Node, in []*gorgonia.Node) *gorgonia.Node {
	shape := l.concrete(n)
	width := shape[len(shape)-1]
	run := rowwise(width, func(out []T, in [][]T, from, to int) {
		m, sum := shiftedExp(in[0][from:to])
		for i, v := range in[0][from:to] {
			out[i] = T(exp[T](float64(v)-m) / sum)
		}
	})
	back := rowwise(width, func(dx []T, in [][]T, from, to int) {
		y, dy := in[0][from:to], in[1][from:to]
		mean := 0.0
		for i, v := range y {
			mean += float64(v) * float64(dy[i])
		}
		for i, v := range y {
			dx[i] = v * T(float64(dy[i])-mean)
		}
	})
	grad := func(_ int, _ gorgonia.Nodes, y, dy *gorgonia.Node) *gorgonia.Node {
		return l.apply("SoftmaxGrad", shape, back, nil, y, dy)
	}
	return l.apply("Softmax", shape, run, grad, in...)
}

// lowerLogSoftmax is x - log sum exp(x) along the last axis.
func lowerLogSoftmax[T Float](l *lowerer[T], n *graph.Node, in []*gorgonia.Node) *gorgonia.Node {
	shape := l.concrete(n)
	width := shape[len(shape)-1]
	run := rowwise(width, func(out []T, in [][]T, from, to int) {
		m, sum := shiftedExp(in[0][from:to])
		log := math.Log(sum)
		for i, v := range in[0][from:to] {
			out[i] = T(float64(v) - m - log)
		}
	})
	back := rowwise(width, func(dx []T, in [][]T, from, to int) {
		y, dy := in[0][from:to], in[1][from:to]
		sum := 0.0
		for _, v := range dy {
			sum += float64(v)
		}
		for i, v := range y {
			dx[i] = T(float64(dy[i]) - exp[T](float64(v))*sum)
		}
	})
	grad := func(_ int, _ gorgonia.Nodes, y, dy *gorgonia.Node) *gorgonia.Node {
		return l.apply("LogSoftmaxGrad", shape, back, nil, y, dy)
	}
	return l.apply("LogSoftmax", shape, run, grad, in...)
}
