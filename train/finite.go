// Errors for numbers that are not finite: epoch, bags and advice.

package train

import (
	"fmt"
	"math"
	"strings"

	"github.com/miplc/miplc/internal/ndarray"
)

// NonFiniteError reports the first NaN or infinity of a training.
type NonFiniteError struct {
	Epoch int     // from 1
	Step  int     // in the epoch, from 1; 0: found after the epoch
	Bags  []int   // numbers in the dataset, from 1; empty if it was not found in a step
	Set   string  // name of the dataset
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
		b.WriteString(", " + nameBags(e.Bags, e.Set))
	}
	b.WriteString("; " + e.advice() + ", and look at the features of the data with data inspect")
	return b.String()
}

// advice returns what to change in the spec. The losses of the first step do not depend on the
// settings of train.
func (e *NonFiniteError) advice() string {
	if e.Epoch == 1 && e.Step == 1 && e.What != labelWeight { // a label weight may follow the step
		return "no parameter has changed yet, so look for a division by 0, a logarithm of a number that is not above 0, " +
			"or numbers above 3e38 in the equations of the spec"
	}
	if e.What == labelWeight { // the loss and the probabilities of the step are finite
		return "look for a division by 0 in weights.update: masked_softmax(logp, S) replaces S * p / sum(S * p, 1); or " +
			"clip the gradients with train.clip: 1 or lower train.lr"
	}
	return "clip the gradients with train.clip: 1 or lower train.lr"
}

// labelWeight is What of an error for a label weight.
const labelWeight = "a label weight"

// nameBags returns the text for bags of a dataset, counted from 1, in a message.
func nameBags(numbers []int, set string) string {
	word := "bag"
	if len(numbers) > 1 {
		word = "bags"
	}
	list := strings.Trim(fmt.Sprint(numbers), "[]")
	return fmt.Sprintf("%s %s of %s", word, strings.ReplaceAll(list, " ", ", "), set)
}

// BagNumbers converts indices of bags to numbers counted from 1, for messages and files.
func BagNumbers(bags []int) []int {
	numbers := make([]int, len(bags))
	for i, bag := range bags {
		numbers[i] = bag + 1
	}
	return numbers
}

// finite reports whether v is neither NaN nor infinite.
func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// nonFinite returns an error for the first value of a step that is not finite, or nil. It checks
// the loss terms in the order of the spec, the loss, then the outputs.
func (r *Run) nonFinite(out *StepResult, bags []int) *NonFiniteError {
	bad := func(what string, v float64) *NonFiniteError {
		return &NonFiniteError{What: what, Value: v, Bags: r.nonFiniteBags(out, bags)}
	}
	for i, v := range out.Terms {
		if !finite(v) {
			return bad("loss term "+r.Program.Terms[i], v)
		}
	}
	if !finite(out.Loss) {
		return bad("the loss", out.Loss)
	}
	for _, part := range []struct {
		what   string
		values []float32
	}{{"a probability", out.Probabilities}, {"an attention score", out.Attention}, {labelWeight, out.LabelWeights}} {
		if i := ndarray.FirstNotFinite(part.values); i >= 0 {
			return bad(part.what, float64(part.values[i]))
		}
	}
	return nil
}

// nonFiniteBags returns the numbers, from 1, of the bags whose outputs are not finite, or of all
// bags of the step if all outputs are finite.
func (r *Run) nonFiniteBags(out *StepResult, bags []int) (list []int) {
	k, attention := r.Data.Classes, out.Attention
	row := func(values []float32, i int) []float32 {
		return values[min(i*k, len(values)):min((i+1)*k, len(values))]
	}
	for i, bag := range bags {
		own := min(r.Data.Size(bag), len(attention))
		if ndarray.FirstNotFinite(row(out.Probabilities, i)) >= 0 || ndarray.FirstNotFinite(row(out.LabelWeights, i)) >= 0 ||
			ndarray.FirstNotFinite(attention[:own]) >= 0 {
			list = append(list, bag)
		}
		attention = attention[own:]
	}
	if list == nil {
		list = bags
	}
	return BagNumbers(list)
}
