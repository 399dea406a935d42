// Counts from which the measures are computed, and the bins of calibration.

package measure

import (
	"math"
	"slices"

	"github.com/miplc/miplc/internal/ndarray"
)

// counts are sums over bags, from which the measures follow. All but inside and limited
// are sums over the bags with known labels. Only bags with one label have second, brier, bins,
// inside and limited.
type counts struct {
	p                       *Predictions
	known                   int
	right                   int   // bags whose predicted labels are the true ones
	support, predicted, hit []int // by class: true, predicted, both
	second                  int   // bags whose true class is among the two most probable ones
	logLoss, brier          float64
	bins                    []binSum
	inside, limited         int // bags with a candidate set that excludes a class; those predicted inside it
}

// leastProbability bounds the log loss: the spacing of float32 numbers at 1.
const leastProbability = 1. / (1 << 23)

// logLoss returns -ln p, at most 23 ln 2.
func logLoss(p float64) float64 { return -math.Log(max(p, leastProbability)) }

// count returns the counts of all bags. They are those of no bags if a probability is not finite, because nothing can
// be said about such a model.
func (p *Predictions) count() *counts {
	k := p.Classes
	t := &counts{p: p, support: make([]int, k), predicted: make([]int, k), hit: make([]int, k), bins: make([]binSum,
		binCount)}
	if ndarray.FirstNotFinite(p.Probabilities) >= 0 {
		return t
	}
	for i := range p.Bags() {
		class := Argmax(p.Row(i))
		if set := p.Candidates[i*k : (i+1)*k]; slices.Contains(set, 0) && slices.Contains(set, 1) {
			t.limited++
			t.inside += int(set[class])
		}
		if !p.Known[i] {
			continue
		}
		t.known++
		t.addLabels(i, class)
		if p.multi() {
			t.addBinary(i)
		} else {
			t.addProbabilities(p.Row(i), p.label(i), class)
		}
	}
	return t
}

// addLabels compares the predicted labels of a bag with the true ones. class is its most probable
// class.
func (t *counts) addLabels(bag, class int) {
	labels, equal := t.p.labels(bag), true
	for c, v := range t.p.Row(bag) {
		is, predicted := labels[c] == 1, c == class
		if t.p.multi() {
			predicted = float64(v) > t.p.Threshold
		}
		if is {
			t.support[c]++
		}
		if predicted {
			t.predicted[c]++
		}
		if is && predicted {
			t.hit[c]++
		}
		equal = equal && is == predicted
	}
	if equal {
		t.right++
	}
}

// addBinary adds the mean over the classes of -ln of the probability that a bag has the label, or has it not.
func (t *counts) addBinary(bag int) {
	sum, labels := 0.0, t.p.labels(bag)
	for c, v := range t.p.Row(bag) {
		right := float64(v)
		if labels[c] == 0 {
			right = 1 - right
		}
		sum += logLoss(right)
	}
	t.logLoss += sum / float64(t.p.Classes)
}

func (t *counts) addProbabilities(row []float32, label, class int) {
	above := 0 // classes that are more probable than the true one
	for c, v := range row {
		if v > row[label] || v == row[label] && c < label {
			above++
		}
		d := float64(v)
		if c == label {
			d--
		}
		t.brier += float64(d * d)
	}
	if above < 2 {
		t.second++
	}
	t.logLoss += logLoss(float64(row[label]))
	confidence := float64(row[class])
	b := &t.bins[max(0, min(int(math.Ceil(confidence*binCount))-1, binCount-1))] // the first bin includes 0
	b.bags++
	b.confidence += confidence
	if class == label {
		b.right++
	}
}

// total returns the sum of the values of some classes.
func total(values []int) (n int) {
	for _, v := range values {
		n += v
	}
	return n
}

// mean returns the mean over the classes for which of is defined.
func (t *counts) mean(of func(class int) (float64, bool)) (float64, bool) {
	sum, n := 0.0, 0
	for c := range t.p.Classes {
		if v, ok := of(c); ok {
			sum, n = sum+v, n+1
		}
	}
	return ratio(sum, n)
}

// ratio returns sum/n, which is not defined for n = 0.
func ratio[T int | float64](sum T, n int) (float64, bool) {
	if n == 0 {
		return 0, false
	}
	return float64(sum) / float64(n), true
}

func (t *counts) recall(c int) (float64, bool)    { return ratio(t.hit[c], t.support[c]) }
func (t *counts) precision(c int) (float64, bool) { return ratio(t.hit[c], t.predicted[c]) }
func (t *counts) f1(c int) (float64, bool) {
	return ratio(2*t.hit[c], t.support[c]+t.predicted[c])
}

// auroc returns the area under the receiver operating characteristic of a class against
// the rest: the probability that a bag of the class has a higher probability of it than
// another bag, where equal probabilities count half.
func (t *counts) auroc(class int) (float64, bool) {
	positives, negatives := float64(t.support[class]), float64(t.known-t.support[class])
	if positives == 0 || negatives == 0 {
		return 0, false
	}
	keys := t.ranking(class)
	below, area := 0.0, 0.0 // below: bags of other classes
	for len(keys) > 0 {
		n, of := 0, 0.0
		for ; n < len(keys) && keys[n]>>1 == keys[0]>>1; n++ {
			of += float64(keys[n] & 1)
		}
		others := float64(n) - of
		area += of * (below + others/2)
		below += others
		keys = keys[n:]
	}
	return area / (positives * negatives), true
}

// ranking returns, in ascending order, a key for each bag with known labels: its probability
// of the class, as an integer that sorts alike, and in the lowest bit whether it has the label.
func (t *counts) ranking(class int) []uint64 {
	keys := make([]uint64, 0, t.known)
	for i, known := range t.p.Known {
		if known {
			keys = append(keys, uint64(sortable(t.p.Row(i)[class]))<<1|uint64(t.p.labels(i)[class]))
		}
	}
	sortKeys(keys)
	return keys
}

// sortKeys sorts keys of 33 bits: digit by digit if there are many, which takes a third of the time of slices.Sort.
func sortKeys(keys []uint64) {
	const bits, digits, fewest = 11, 3, 200
	if len(keys) < fewest {
		slices.Sort(keys)
		return
	}
	from, to := keys, make([]uint64, len(keys))
	for digit := range digits {
		var starts [1<<bits + 1]int32
		place := func(key uint64) int { return int(key >> (bits * digit) % (1 << bits)) }
		for _, key := range from {
			starts[place(key)+1]++
		}
		for i := range 1 << bits {
			starts[i+1] += starts[i]
		}
		for _, key := range from {
			p := &starts[place(key)]
			to[*p] = key
			*p++
		}
		from, to = to, from
	}
	copy(keys, from)
}

// averagePrecision returns the mean over the bags of a class of the precision among the bags
// with the same or a higher probability of it.
func (t *counts) averagePrecision(class int) (float64, bool) {
	if t.support[class] == 0 {
		return 0, false
	}
	keys := t.ranking(class)
	sum, hits, above := 0.0, 0.0, 0.0
	for len(keys) > 0 {
		last, of := len(keys), 0.0
		for value := keys[last-1] >> 1; last > 0 && keys[last-1]>>1 == value; last-- {
			of += float64(keys[last-1] & 1)
		}
		above, hits = above+float64(len(keys)-last), hits+of
		sum += of * hits / above
		keys = keys[:last]
	}
	return sum / float64(t.support[class]), true
}

// sortable returns an integer that orders numbers as v does.
func sortable(v float32) uint32 {
	const sign = 1 << 31
	bits := math.Float32bits(v + 0) // -0 becomes 0
	if bits&sign != 0 {
		return ^bits
	}
	return bits | sign
}

// binCount is the number of bins of the reliability diagram and the ECE.
const binCount = 15

// Bin is a bin of the reliability diagram: the bags whose predicted class has a
// probability above Low and up to High.
type Bin struct {
	Low        float64  `json:"low"`
	High       float64  `json:"high"`
	Bags       int      `json:"bags"`
	Confidence *float64 `json:"confidence"` // mean probability of the predicted class; nil without bags
	Accuracy   *float64 `json:"accuracy"`   // share predicted right; nil without bags
}

type binSum struct {
	bags, right int
	confidence  float64
}

// calibrationError returns the ECE times the number of bags.
func (t *counts) calibrationError() (sum float64) {
	for _, b := range t.bins {
		sum += math.Abs(float64(b.right) - b.confidence)
	}
	return sum
}

// reliability returns the bins, or nil if a probability is not finite or a bag has any number of
// labels.
func (t *counts) reliability() []Bin {
	if t.known == 0 || t.p.multi() {
		return nil
	}
	list := make([]Bin, binCount)
	for i, b := range t.bins {
		list[i] = Bin{Low: float64(i) / binCount, High: float64(i+1) / binCount, Bags: b.bags,
			Confidence: defined(ratio(b.confidence, b.bags)), Accuracy: defined(ratio(b.right, b.bags))}
	}
	return list
}
