// Random valid specs, for tests that compare engines, exports and commands on more than the shipped models.

package modeltest

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/miplc/miplc/internal/ndarray"
)

// RandomSpec returns the YAML text of a small random spec. It is complete and valid by construction: it
// loads, compiles and trains on bags of generated:prototypes. Equal seeds give equal texts.
//
// The models are well-conditioned: for features of about unit size all values are below a few hundred and none is a
// difference of two large ones, so that engines of different precision agree on them.
func RandomSpec(seed uint64) string {
	d := &draw{Rand: ndarray.NewStream(seed, "random spec"), seed: seed, multi: drawsMulti(seed)}
	d.line("name: random%d", seed)
	d.line("description: Random spec of seed %d", seed)
	d.data()
	d.model()
	d.loss()
	d.aside(seed)
	d.write()
	d.weights()
	d.train()
	d.export()
	return d.text.String()
}

// draw is a spec that is being drawn.
type draw struct {
	*rand.Rand
	seed uint64
	text strings.Builder

	instance  []int // shape of one instance
	classes   int
	multi     bool  // a bag has several labels
	shape     []int // of one instance after the blocks so far
	scored    bool  // the model has attention scores
	blocks    []string
	sizes     []string
	numbers   []string
	params    []string
	functions []string
	lets      []string
	shared    []string       // equations of losses
	outputs   []string       // lines that name outputs
	learned   []string       // names of params
	terms     []string       // of the loss
	update    string         // of the label weights, if it is drawn before weights
	counts    map[string]int // number of used names, by their first letter
}

func (d *draw) line(format string, args ...any) { fmt.Fprintf(&d.text, format+"\n", args...) }

// between draws a whole number from lo to hi, inclusive.
func (d *draw) between(lo, hi int) int { return lo + d.IntN(hi-lo+1) }

// chance is true with probability p.
func (d *draw) chance(p float64) bool { return d.Float64() < p }

// one picks one of the words.
func (d *draw) one(words ...string) string { return words[d.IntN(len(words))] }

// number draws a number from lo to hi with two decimals.
func (d *draw) number(lo, hi float64) string { return fmt.Sprintf("%.2f", lo+(hi-lo)*d.Float64()) }

// name returns a new name.
func (d *draw) name(letter string) string {
	if d.counts == nil {
		d.counts = map[string]int{}
	}
	d.counts[letter]++
	return fmt.Sprintf("%s%d", letter, d.counts[letter])
}

// list writes a flow sequence.
func list(shape []int) string { return strings.ReplaceAll(fmt.Sprint(shape), " ", ", ") }
