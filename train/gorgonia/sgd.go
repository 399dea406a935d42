package gorgonia

// sgd is stochastic gradient descent with momentum and weight decay in the
// formulation of PyTorch: g += decay w; v = momentum v + g; w -= lr (g +
// momentum v) with Nesterov's momentum, w -= lr v without.
type sgd struct {
	momentum, decay float32
	nesterov        bool
}

// step updates the parameters w and their velocities v by the gradients g. The
// conversions keep compilers from fusing a product and a sum, which would make
// the bits depend on the processor.
func (s *sgd) step(w, v, g []float32, lr float32) {
	v, g = v[:len(w)], g[:len(w)]
	for i := range w {
		d := g[i] + float32(s.decay*w[i])
		v[i] = float32(s.momentum*v[i]) + d
		if s.nesterov {
			d += float32(s.momentum * v[i])
		} else {
			d = v[i]
		}
		w[i] -= float32(lr * d)
	}
}

// finite reports whether all values are neither NaN nor infinite.
func finite(values []float32) bool {
	for _, v := range values {
		if v-v != 0 {
			return false
		}
	}
	return true
}
