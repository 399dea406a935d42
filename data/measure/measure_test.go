// Measures against scikit-learn, and at their limits.

package measure

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/miplc/miplc/internal/testkit/testsupport"
)

// only returns the labels of a bag with one label of k, nil for -1.
func only(label, k int) []uint8 {
	if label < 0 {
		return nil
	}
	labels := make([]uint8, k)
	labels[label] = 1
	return labels
}

// near reports whether two numbers are equal up to rounding.
func near(a, b float64) bool { return math.Abs(a-b) < 1e-9 }

// All values agree with those of testdata/sklearn_values.py.
func TestScikitLearn(t *testing.T) {
	text, err := os.ReadFile("testdata/sklearn_values.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		Labels        []int
		Classes       int
		Threshold     float64
		Probabilities []float32
		Candidates    []int
		Values        map[string]float64
		Table         []Class
		Confusion     [][]int
	}
	if err := json.Unmarshal(text, &cases); err != nil {
		t.Fatal(err)
	}
	for i, c := range cases {
		p := Predictions{Threshold: c.Threshold}
		names := []string{"0", "1", "2", "3", "4", "5"}
		bytes := func(numbers []int) []uint8 {
			out := make([]uint8, len(numbers))
			for j, n := range numbers {
				out[j] = uint8(n)
			}
			return out
		}
		for bag := range len(c.Probabilities) / c.Classes {
			from, to := bag*c.Classes, (bag+1)*c.Classes
			if c.Threshold > 0 {
				p.Add(c.Probabilities[from:to], bytes(c.Labels[from:to]), nil)
			} else {
				p.Add(c.Probabilities[from:to], only(c.Labels[bag], c.Classes), bytes(c.Candidates[from:to]))
			}
		}
		got := p.Values()
		if len(got) != len(c.Values) {
			t.Errorf("case %d: %v, want %v", i, got, c.Values)
		}
		for name, want := range c.Values {
			if v, found := got[name]; !found || !near(v, want) {
				t.Errorf("case %d: %s is %v, want %v", i, name, v, want)
			}
		}
		d := p.Detail(names)
		if !reflect.DeepEqual(d.Confusion, c.Confusion) {
			t.Errorf("case %d: confusion %v, want %v", i, d.Confusion, c.Confusion)
		}
		for n, want := range c.Table {
			if have := d.Classes[n]; !sameClass(have, want) {
				a, _ := json.Marshal(have)
				b, _ := json.Marshal(want)
				t.Errorf("case %d: class %s, want %s", i, a, b)
			}
		}
	}
}

func sameClass(a, b Class) bool {
	same := a.Name == b.Name && a.Support == b.Support && a.Predicted == b.Predicted
	numbers := func(c Class) (list []*float64) {
		list = []*float64{c.Precision, c.Recall, c.F1, c.AUROC, c.AveragePrecision}
		for _, i := range []*ConfidenceInterval{c.PrecisionInterval, c.RecallInterval} {
			if i == nil {
				list = append(list, nil, nil)
			} else {
				list = append(list, &i.Low, &i.High)
			}
		}
		return list
	}
	one, other := numbers(a), numbers(b)
	for i := range one {
		same = same && (one[i] == nil) == (other[i] == nil) && (one[i] == nil || math.Abs(*one[i]-*other[i]) < 1e-8)
	}
	return same
}

// random draws predictions. Some labels and candidate sets are unknown, and many probabilities are
// equal.
func random(r *rand.Rand) *Predictions {
	p, k := &Predictions{}, 2+r.IntN(5)
	for range 1 + r.IntN(30) {
		row, set, sum := make([]float32, k), make([]uint8, k), float32(0)
		for c := range row {
			row[c] = float32(1 + r.IntN(6))
			sum += row[c]
			set[c] = uint8(r.IntN(2))
		}
		for c := range row {
			row[c] /= sum
		}
		p.Add(row, only(r.IntN(k+1)-1, k), set)
	}
	return p
}

func letters(n int) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = string(rune('a' + i))
	}
	return list
}

// Measures stay in their ranges, do not depend on the order of the bags, and ignore bags without
// known labels and candidates.
func TestProperties(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		p := random(r)
		values := p.Values()
		for name, v := range values {
			if !(v >= 0 && v <= Find(name).Max+1e-6) {
				t.Errorf("seed %d: %s is %v", seed, name, v)
			}
		}
		var other Predictions
		for _, i := range r.Perm(p.Bags()) {
			other.Add(p.Row(i), only(p.label(i), p.Classes), p.Candidates[i*p.Classes:(i+1)*p.Classes])
			other.Add(p.Row(i), nil, nil)
		}
		for name, v := range other.Values() {
			if !near(v, values[name]) {
				t.Errorf("seed %d: %s is %v in another order, %v before", seed, name, v, values[name])
			}
		}
		checkDetail(t, seed, p, values)
	}
}

// checkDetail compares the details with the measures.
func checkDetail(t *testing.T, seed uint64, p *Predictions, values Values) {
	d := p.Detail(letters(p.Classes))
	if text, err := json.Marshal(d); err != nil {
		t.Errorf("seed %d: %s: %v", seed, text, err)
	}
	known, right := 0, 0
	for c, row := range d.Classes {
		known, right = known+row.Support, right+d.Confusion[c][c]
		if row.Recall != nil && !(row.RecallInterval.Low <= *row.Recall && *row.Recall <= row.RecallInterval.High) {
			t.Errorf("seed %d: recall %v lies outside %v", seed, *row.Recall, *row.RecallInterval)
		}
	}
	share, ok := ratio(right, known)
	if v := values.Get(Accuracy); ok != (v != nil) || ok && !near(*v, share) {
		t.Errorf("seed %d: accuracy %v, the confusion matrix says %v", seed, v, share)
	}
	ece, bags := 0.0, 0
	for _, b := range d.Reliability {
		if bags += b.Bags; b.Bags > 0 {
			ece += float64(b.Bags) * math.Abs(*b.Accuracy-*b.Confidence) / float64(known)
		}
	}
	if v := values.Get(ECE); v != nil && (!near(*v, ece) || bags != known) {
		t.Errorf("seed %d: ECE %v, the diagram says %v of %d bags", seed, *v, ece, bags)
	}
}

// Certain correct predictions have the best values, and certain wrong ones the worst.
func TestExtremes(t *testing.T) {
	var right, wrong Predictions
	for label := range 3 {
		one := make([]float32, 3)
		one[label] = 1
		set := []uint8{1, 1, 1}
		set[(label+1)%3] = 0
		right.Add(one, only(label, 3), set)
		wrong.Add(one, only((label+1)%3, 3), set)
	}
	for _, c := range []struct {
		p    *Predictions
		want Values
	}{
		{&right, Values{"accuracy": 1, "balanced_accuracy": 1, "macro_f1": 1, "auroc": 1, "log_loss": 0, "brier": 0, "ece": 0,
			"top2": 1, "inside_candidates": 1}},
		{&wrong, Values{"accuracy": 0, "balanced_accuracy": 0, "macro_f1": 0, "auroc": 0.25, "log_loss": 23 * math.Ln2,
			"brier": 2, "ece": 1, "top2": 2. / 3, "inside_candidates": 1}},
	} {
		if got := c.p.Values(); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%v, want %v", got, c.want)
		}
	}
}

// Without labels, without bags, or with probabilities that are not finite, measures have
// no value instead of one that JSON cannot write.
func TestUndefined(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	one := func(label int, set []uint8, row ...float32) *Predictions {
		p := &Predictions{}
		p.Add(row, only(label, len(row)), set)
		return p
	}
	for i, c := range []struct {
		p    *Predictions
		want []string
	}{
		{&Predictions{}, nil},
		{one(-1, nil, 0.5, 0.5), nil},
		{one(-1, []uint8{1, 1}, 0.5, 0.5), nil},
		{one(-1, []uint8{1, 0}, 0.5, 0.5), []string{"inside_candidates"}},
		{one(0, nil, 0.5, 0.5), []string{"accuracy", "balanced_accuracy", "brier", "ece", "log_loss", "macro_f1"}},
		{one(0, nil, nan, 0.5), nil},
		{one(1, nil, 0, -inf, nan), nil},
		{one(-1, []uint8{1, 0}, nan, nan), nil},
	} {
		values := c.p.Values()
		var got []string
		for name := range values {
			got = append(got, name)
		}
		slices.Sort(got)
		if !slices.Equal(got, c.want) {
			t.Errorf("case %d: %v, want %v", i, got, c.want)
		}
		for _, v := range []any{values, c.p.Detail(letters(c.p.Classes))} {
			if _, err := json.Marshal(v); err != nil {
				t.Errorf("case %d: %v", i, err)
			}
		}
	}
}

// Degenerate predictions have the values of the definitions: bags of one class, equal probabilities, and
// one bag, which leaves all bins of the calibration but one empty.
func TestDegenerate(t *testing.T) {
	predictions := func(row []float32, labels ...int) *Predictions {
		p := &Predictions{}
		for _, label := range labels {
			p.Add(row, only(label, len(row)), nil)
		}
		return p
	}
	for _, c := range []struct {
		name string
		p    *Predictions
		want Values
	}{
		{"one class", predictions([]float32{0.75, 0.25}, 0, 0, 0),
			Values{"accuracy": 1, "balanced_accuracy": 1, "macro_f1": 1, "log_loss": math.Log(4. / 3), "brier": 0.125,
				"ece": 0.25}},
		{"equal probabilities", predictions([]float32{0.5, 0.5}, 0, 1),
			Values{"accuracy": 0.5, "balanced_accuracy": 0.5, "macro_f1": 1. / 3, "auroc": 0.5, "log_loss": math.Ln2,
				"brier": 0.5, "ece": 0}},
		{"one bag", predictions([]float32{0.25, 0.75}, 0),
			Values{"accuracy": 0, "balanced_accuracy": 0, "macro_f1": 0, "log_loss": math.Log(4), "brier": 1.125, "ece": 0.75}},
	} {
		got := c.p.Values()
		if len(got) != len(c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
		for name, want := range c.want {
			if v := got.Get(name); v == nil || !near(*v, want) {
				t.Errorf("%s: %s is %v, want %v", c.name, name, got[name], want)
			}
		}
		d := c.p.Detail(letters(2))
		for _, b := range d.Reliability {
			if (b.Bags == 0) != (b.Accuracy == nil) || (b.Bags == 0) != (b.Confidence == nil) {
				t.Errorf("%s: %+v", c.name, b)
			}
		}
		for i, class := range d.Classes {
			if class.Support == 0 && (class.Recall != nil || class.RecallInterval != nil || class.AUROC != nil) {
				t.Errorf("%s: class %d without bags: %+v", c.name, i, class)
			}
		}
	}
	if i := wilson(0, 1); i.Low != 0 || math.Abs(i.High-0.7934506856227626) > 1e-12 {
		t.Errorf("interval of 0 of 1: %v", i)
	}
	if wilson(0, 0) != nil {
		t.Error("an interval of no bags")
	}
}

// Every name is in the table once, and every row is complete.
func TestTable(t *testing.T) {
	for i, m := range Table {
		if Find(m.Name) != &Table[i] || slices.Index(Names(), m.Name) != i {
			t.Errorf("%s: the name is not unique", m.Name)
		}
		if m.Title == "" || m.Range == "" || m.Max <= 0 || m.Formula == "" || m.Needs == "" {
			t.Errorf("%s: the row is not complete", m.Name)
		}
	}
	if Find("nonsense") != nil {
		t.Error("an unknown name is found")
	}
}

// The table in the documentation is generated from the table in the code.
func TestReference(t *testing.T) {
	testsupport.CheckLanguageTables(t, "../../docs/measures.md", map[string]string{"measures": reference()})
}

// BenchmarkValues measures the time of all measures of an epoch, which must be small compared with
// its predictions.
func BenchmarkValues(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 1))
	var p Predictions
	for range 10000 {
		row := make([]float32, 10)
		for c := range row {
			row[c] = r.Float32() / 10
		}
		p.Add(row, only(r.IntN(10), 10), nil)
	}
	for b.Loop() {
		p.Values()
	}
}

var labellings = [...]string{anyLabels: "any", oneLabel: "one", multiLabels: "multi"}

// better names the direction in which a measure improves.
func better(m *Measure) string {
	if m.Lower {
		return "lower"
	}
	return "higher"
}

// reference returns the table as Markdown.
func reference() string {
	var b strings.Builder
	b.WriteString("| name | labels | definition | range | better | needs |\n|---|---|---|---|---|---|\n")
	for _, m := range Table {
		if m.Group {
			continue
		}
		b.WriteString("| `" + m.Name + "` | " + labellings[m.labels] + " | " + m.Formula + " | " + m.Range + " | " +
			better(&m) + " | " + m.Needs + " |\n")
	}
	return b.String()
}

// NaN is no prediction, and is smaller than all numbers.
func TestNaNIsNoPrediction(t *testing.T) {
	nan := float32(math.NaN())
	for _, c := range []struct {
		p                 []float32
		largest, predicts int
	}{
		{[]float32{0.2, 0.8}, 1, 1}, {[]float32{0.5, 0.5}, 0, 0}, {[]float32{nan, 0.2, 0.3}, 2, -1},
		{[]float32{0.4, nan}, 0, -1},
		{[]float32{nan, nan}, 0, -1},
	} {
		if largest, class := Argmax(c.p), Predicted(c.p); largest != c.largest || class != c.predicts {
			t.Errorf("%v: the largest is %d, class %d is predicted", c.p, largest, class)
		}
	}
}

func TestSortKeys(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{0, 1, 199, 200, 1000, 5000} {
		keys := make([]uint64, n)
		for i := range keys {
			keys[i] = random.Uint64() >> (31 + i%3)
		}
		want := slices.Sorted(slices.Values(keys))
		sortKeys(keys)
		if !slices.Equal(keys, want) {
			t.Errorf("%d keys are not sorted", n)
		}
	}
}
