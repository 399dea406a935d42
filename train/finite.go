package train

import (
	"fmt"
	"math"
	"strings"

	"github.com/miplc/miplc/language"
)

// NonFiniteError tells where a NaN or an infinity came up first.
type NonFiniteError struct {
	Epoch int     // from 1
	Step  int     // in the epoch, from 1; 0: found after the epoch
	Bags  []int   // numbers in the data set, from 1; empty if no bag is to blame
	Set   string  // name of the data set
	What  string  // e.g. "loss term attention"
	Value float64 // NaN or an infinity
}

func (e *NonFiniteError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "training stopped: %s became %v in epoch %d", e.What, e.Value, e.Epoch)
	if e.Step > 0 {
		fmt.Fprintf(&b, ", step %d", e.Step)
	}
	if len(e.Bags) > 0 {
		word := "bag"
		if len(e.Bags) > 1 {
			word = "bags"
		}
		list := strings.Trim(fmt.Sprint(e.Bags), "[]")
		fmt.Fprintf(&b, ", %s %s of %s", word, strings.ReplaceAll(list, " ", ", "), e.Set)
	}
	b.WriteString("; try a smaller train.lr, and look at the features of the data with data inspect")
	return b.String()
}

// finite reports whether v is neither NaN nor infinite.
func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// firstNonFinite returns the index of the first value that is not finite, or -1.
func firstNonFinite(values []float32) int {
	for i, v := range values {
		if v-v != 0 { // NaN and infinities alone
			return i
		}
	}
	return -1
}

// termOrder lists the names of the loss terms as the spec has them.
func termOrder(losses []language.Loss) []string {
	names := make([]string, len(losses))
	for i, l := range losses {
		names[i] = l.Kind.V
		if l.Kind.V == "equation" {
			names[i] = l.Name.V
		}
	}
	return names
}

// checkResult looks for the first value of a step that is not finite: the loss
// terms in the order of the spec, the whole loss, then the outputs.
func checkResult(r *Result, b *Batch, terms []string) *NonFiniteError {
	bad := func(what string, v float64) *NonFiniteError {
		return &NonFiniteError{What: what, Value: v, Bags: culprits(r, b)}
	}
	for _, name := range terms {
		if v, ok := r.Terms[name]; ok && !finite(v) {
			return bad("loss term "+name, v)
		}
	}
	if !finite(r.Loss) {
		return bad("the loss", r.Loss)
	}
	for _, out := range []struct {
		what   string
		values []float32
	}{{"a probability", r.Probabilities}, {"an attention score", r.Attention}, {"a label weight", r.Weights}} {
		if i := firstNonFinite(out.values); i >= 0 {
			return bad(out.what, float64(out.values[i]))
		}
	}
	return nil
}

// culprits gives the positions in the batch of the bags whose own outputs are
// not finite; all bags of the batch when no output tells.
func culprits(r *Result, b *Batch) []int {
	k := len(r.Probabilities) / b.Bags
	bad := make([]bool, b.Bags)
	for i, v := range r.Probabilities {
		bad[i/k] = bad[i/k] || !finite(float64(v))
	}
	for i, v := range r.Attention {
		bad[b.BagOf[i]] = bad[b.BagOf[i]] || !finite(float64(v))
	}
	for i, v := range r.Weights {
		bad[i/k] = bad[i/k] || !finite(float64(v))
	}
	var some, all []int
	for i, is := range bad {
		all = append(all, i)
		if is {
			some = append(some, i)
		}
	}
	if some == nil {
		return all
	}
	return some
}
