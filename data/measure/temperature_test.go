// Temperatures of probabilities that were heated or cooled.

package measure

import (
	"math"
	"math/rand/v2"
	"testing"
)

// heated returns predictions whose logits are t times those from which the labels were drawn, so t is
// the temperature that calibrates them.
func heated(t float64, bags int) *Predictions {
	r := rand.New(rand.NewPCG(7, 1))
	p := &Predictions{}
	for range bags {
		logits, probabilities := make([]float64, 4), make([]float32, 4)
		for c := range logits {
			logits[c] = 1.5 * r.NormFloat64()
		}
		softmax := func(scale float64) (out [4]float64) {
			sum := 0.0
			for _, z := range logits {
				sum += math.Exp(scale * z)
			}
			for c, z := range logits {
				out[c] = math.Exp(scale*z) / sum
			}
			return out
		}
		label, draw := 0, r.Float64()
		for c, v := range softmax(1) {
			if draw -= v; draw < 0 {
				label = c
				break
			}
		}
		for c, v := range softmax(t) {
			probabilities[c] = float32(v)
		}
		p.Add(probabilities, only(label, len(probabilities)), nil)
	}
	return p
}

// cooled applies a temperature.
func cooled(p *Predictions, t float64) *Predictions {
	out := &Predictions{}
	for i := range p.Bags() {
		row, sum := make([]float32, p.Classes), 0.0
		for _, v := range p.Row(i) {
			sum += math.Pow(float64(v), 1/t)
		}
		for c, v := range p.Row(i) {
			row[c] = float32(math.Pow(float64(v), 1/t) / sum)
		}
		out.Add(row, p.labels(i), nil)
	}
	return out
}

// The fitted temperature is the one with which the labels were drawn, and no temperature nearby has
// a smaller log loss.
func TestTemperature(t *testing.T) {
	for _, want := range []float64{0.3, 1, 2.5, 6} {
		p := heated(want, 4000)
		got, ok := p.Temperature()
		if !ok || math.Abs(math.Log(got/want)) > 0.06 {
			t.Errorf("temperature %v, want about %v", got, want)
		}
		best := cooled(p, got).Values()
		for _, factor := range []float64{0.98, 1.02} {
			if other := cooled(p, got*factor).Values()[LogLoss]; other < best[LogLoss] {
				t.Errorf("temperature %v has the log loss %v, %v has %v", got, best[LogLoss], got*factor, other)
			}
		}
		if before := p.Values(); want != 1 && !(best[ECE] < before[ECE] && best[LogLoss] < before[LogLoss]) {
			t.Errorf("temperature %v: before %v, after %v", got, before, best)
		}
	}
}

// Certain predictions give the temperatures at the limits.
func TestTemperatureLimits(t *testing.T) {
	var right, wrong, unknown, broken Predictions
	right.Add([]float32{0.6, 0.4}, only(0, 2), nil)
	wrong.Add([]float32{1, 0}, only(1, 2), nil)
	unknown.Add([]float32{0.9, 0.1}, nil, nil)
	broken.Add([]float32{0.9, float32(math.NaN())}, only(0, 2), nil)
	for _, c := range []struct {
		p    *Predictions
		want float64
		ok   bool
	}{{&right, minTemperature, true}, {&wrong, maxTemperature, true}, {&unknown, 0, false}, {&broken, 0, false},
		{&Predictions{}, 0, false}} {
		if got, ok := c.p.Temperature(); ok != c.ok || math.Abs(got-c.want) > 1e-6 {
			t.Errorf("temperature %v, %v, want %v, %v", got, ok, c.want, c.ok)
		}
	}
}

// Candidate sets of the label and a random other class give the same temperature as labels, for many bags.
func TestCandidateTemperature(t *testing.T) {
	for _, want := range []float64{0.4, 1, 3} {
		r := rand.New(rand.NewPCG(7, 2))
		of := heated(want, 8000)
		p := &Predictions{}
		for i := range of.Bags() {
			candidates := only(of.label(i), of.Classes)
			candidates[(of.label(i)+1+r.IntN(of.Classes-1))%of.Classes] = 1
			p.Add(of.Row(i), nil, candidates)
		}
		got, bags := p.CandidateTemperature()
		if math.Abs(math.Log(got/of.mustTemperature(t))) > 0.1 || bags != of.Bags() {
			t.Errorf("temperature %.3f of %d candidate sets, %.3f of labels", got, bags, of.mustTemperature(t))
		}
	}
	all := &Predictions{}
	all.Add([]float32{0.5, 0.5}, nil, []uint8{1, 1})
	if _, bags := all.CandidateTemperature(); bags != 0 {
		t.Errorf("fitted to %d sets that exclude no class", bags)
	}
}

func (p *Predictions) mustTemperature(t *testing.T) float64 {
	v, ok := p.Temperature()
	if !ok {
		t.Fatal("no temperature")
	}
	return v
}
