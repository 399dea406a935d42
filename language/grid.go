// Settings that a search varies: lists of values and ranges of numbers, and the random settings that are drawn from
// them.

package language

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/internal/ndarray"
	"github.com/miplc/miplc/language/schema"
)

// Assignment is one override of a spec, like --set.
type Assignment struct {
	Key   string
	Value string // YAML in flow style
	Pos   diag.Pos
}

func (s Assignment) String() string { return s.Key + "=" + s.Value }

// Override returns the assignment as an override of a spec.
func (s Assignment) Override() schema.Override { return schema.Override{Text: s.String(), Pos: s.Pos} }

// DescribeSettings returns settings as "key=value, key=value".
func DescribeSettings(set []Assignment) string {
	list := make([]string, len(set))
	for i, s := range set {
		list[i] = s.String()
	}
	return strings.Join(list, ", ")
}

// Axis is a key of a spec with several values: a list, or a range of numbers.
type Axis struct {
	Key    string
	Values []Assignment // of a list
	Range  *Range       // in place of Values
}

// Pos returns the position of the first value, or of the range.
func (a *Axis) Pos() diag.Pos {
	if a.Range != nil {
		return a.Range.Pos
	}
	return a.Values[0].Pos
}

// Range is a range of numbers to draw from.
type Range struct {
	Form      string // one of the words of rangeForms
	Low, High float64
	Pos       diag.Pos
}

// Log reports whether the logarithms of the numbers are uniform.
func (r *Range) Log() bool { return r.Form == "log" }

// String writes the range as in a grid.
func (r *Range) String() string {
	return fmt.Sprintf("{%s: [%v, %v]}", r.Form, r.Low, r.High)
}

// rangeForms are the words of ranges and how u, a random number from 0 to 1 (1 excluded), becomes a value.
var rangeForms = map[string]func(r *Range, u float64) string{
	// Three digits are enough to repeat a setting, and a table shows them.
	"log": func(r *Range, u float64) string {
		return r.round(r.Low*math.Pow(r.High/r.Low, u), func(v float64) string { return strconv.FormatFloat(v, 'g', 3, 64) })
	},
	"uniform": func(r *Range, u float64) string {
		decimals := max(0, 3-int(math.Floor(math.Log10(r.High-r.Low))))
		return r.round(r.Low+u*(r.High-r.Low), func(v float64) string { return strconv.FormatFloat(v, 'f', decimals, 64) })
	},
	"int": func(r *Range, u float64) string {
		return strconv.FormatFloat(min(r.High, r.Low+math.Floor(u*(r.High-r.Low+1))), 'f', 0, 64)
	},
}

// round returns the shortest text of a rounded number that is in the range.
func (r *Range) round(v float64, format func(float64) string) string {
	rounded, _ := strconv.ParseFloat(format(v), 64) // the text of a number has no errors
	return strconv.FormatFloat(min(max(rounded, r.Low), r.High), 'g', -1, 64)
}

// AxisValues returns the values of axes without ranges.
func AxisValues(axes []Axis) [][]Assignment {
	list := make([][]Assignment, len(axes))
	for i, a := range axes {
		list[i] = a.Values
	}
	return list
}

// Varied returns the axes with more than one value.
func Varied(axes []Axis) []Axis {
	return slices.DeleteFunc(slices.Clone(axes), func(a Axis) bool { return a.Range == nil && len(a.Values) == 1 })
}

// HasRange returns the first range of some axes, or nil.
func HasRange(axes []Axis) *Range {
	for _, a := range axes {
		if a.Range != nil {
			return a.Range
		}
	}
	return nil
}

// Draw returns n different random settings of a grid, or fewer if it has fewer. Setting i depends only on the seed, the
// keys and their values: it is the same in a larger search, on every machine and in every shard.
func Draw(axes []Axis, seed uint64, n int) (list [][]Assignment) {
	const attempts = 100 // of each setting, until the settings count as exhausted
	found := map[string]bool{}
	n = min(n, countDraws(axes, n))
	for i := 0; len(list) < n && i < attempts*n; i++ {
		one := make([]Assignment, len(axes))
		for j := range axes {
			one[j] = axes[j].draw(seed, i)
		}
		if text := DescribeSettings(one); !found[text] {
			found[text] = true
			list = append(list, one)
		}
	}
	return list
}

// countDraws returns the number of different settings of a grid, or most if there are more.
func countDraws(axes []Axis, most int) int {
	count := 1.0
	for _, a := range axes {
		switch {
		case a.Range == nil:
			count *= float64(len(a.Values))
		case a.Range.Form == "int":
			count *= a.Range.High - a.Range.Low + 1
		default:
			return most
		}
	}
	return int(min(count, float64(most)))
}

// draw returns value i of an axis.
func (a *Axis) draw(seed uint64, i int) Assignment {
	u := ndarray.NewStream(seed, "search "+a.Key, uint64(i)).Float64()
	if a.Range == nil {
		return a.Values[int(u*float64(len(a.Values)))]
	}
	return Assignment{a.Key, rangeForms[a.Range.Form](a.Range, u), a.Range.Pos}
}

// nth returns value i of each axis that has so many. A range has one value.
func nth(axes []Axis, i int) (set []Assignment) {
	for _, a := range axes {
		switch {
		case a.Range != nil && i == 0:
			set = append(set, a.draw(0, 0))
		case i < len(a.Values):
			set = append(set, a.Values[i])
		}
	}
	return set
}

// MaxGrid is the maximum number of settings of a search.
const MaxGrid = 1000

// GridNoun describes a grid in messages.
const GridNoun = "a map of keys with lists of values or ranges, such as {train.lr: [0.01, 0.05]} or {train.lr: {log: " +
	"[0.001, 0.1]}}"

// GridSchema returns the JSON Schema of a grid with at most some keys.
func GridSchema(most int, ranges bool) schema.Object {
	value := schema.Object{"type": "array", "minItems": 1}
	if ranges {
		two := schema.Object{"type": "array", "items": schema.Object{"type": "number"}, "minItems": 2, "maxItems": 2}
		value = schema.Object{"anyOf": []any{value, schema.Object{"type": "object", "minProperties": 1, "maxProperties": 1,
			"additionalProperties": false,
			"properties": schema.Object{"log": two, "uniform": two, "int": two,
				"choice": schema.Object{"type": "array", "minItems": 1}}}}}
	}
	return schema.Object{"type": "object", "maxProperties": most, "additionalProperties": value}
}

// ReadGrid reads a map from keys to lists of values or ranges, without keys that have errors. The result is not nil
// unless there is an error. check reports keys that the grid must not have, and whether the grid leaves out a key
// without a value.
func ReadGrid(r *schema.Reader, path string, n *schema.Node, check func(key, value *schema.Node) (skip bool)) []Axis {
	if !n.IsMap() {
		r.AddFault(n.Errorf("%s must be a map such as {train.lr: [0.01, 0.05]}, not %s", path, n.Describe()))
		return nil
	}
	axes := []Axis{}
	for i, key := range n.Keys() {
		var a Axis
		var values []*schema.Node
		before := len(r.Faults())
		if !check(key, n.Items()[i]) {
			a, values = readAxis(r, key, n.Items()[i])
		}
		CheckSetting(r, path, key, values...)
		if len(r.Faults()) == before && (a.Range != nil || len(a.Values) > 0) {
			axes = append(axes, a)
		}
	}
	if HasRange(axes) == nil && CountCombinations(AxisValues(axes), MaxGrid) > MaxGrid {
		r.AddFault(n.Errorf("%s has more than %d settings", path, MaxGrid))
		return nil
	}
	return axes
}

// CheckSetting reports the faults of a key and of values for it, in a map of settings at path.
func CheckSetting(r *schema.Reader, path string, key *schema.Node, values ...*schema.Node) {
	for _, d := range Dialect.CheckSetting(key, values) {
		d.Text = path + ": " + d.Text
		r.AddFault(d)
	}
}

// readAxis reads the values of a key, or their range. It also returns the nodes of the file that have the values, or
// the ends of the range.
func readAxis(r *schema.Reader, key, n *schema.Node) (a Axis, values []*schema.Node) {
	a.Key = key.Raw()
	if n.IsMap() {
		if a.Range, n = readRange(r, key, n); n == nil {
			return a, nil
		}
	}
	switch {
	case a.Range != nil:
		return a, n.Items()
	case !n.IsList():
		r.AddFault(n.Errorf("%s needs a list of values, not %s", key.Raw(), n.Describe()).WithNote("write [%s], "+
			"or a range such as {log: [0.001, 0.1]}", n.Raw()))
		return a, nil
	case len(n.Items()) == 0:
		r.AddFault(n.Errorf("the list of values of %s is empty", key.Raw()))
	}
	values = n.Items()[:min(len(n.Items()), MaxGrid+1)]
	for _, v := range values {
		s := Assignment{key.Raw(), v.Flow(), v.Pos()}
		if slices.ContainsFunc(a.Values, func(had Assignment) bool { return had.Value == s.Value }) {
			r.AddFault(v.Errorf("the value %s is repeated", s.Value))
		}
		a.Values = append(a.Values, s)
	}
	return a, values
}

// readRange reads {form: [low, high]} and returns the range and [low, high]. Of {choice: values} it returns the values
// only; both are nil after an error.
func readRange(r *schema.Reader, key, n *schema.Node) (*Range, *schema.Node) {
	forms := []string{"choice", "int", "log", "uniform"}
	if len(n.Keys()) != 1 {
		r.AddFault(n.Errorf("%s needs one range, such as {log: [0.001, 0.1]}, not %d keys", key.Raw(), len(n.Keys())))
		return nil, nil
	}
	form, ends := n.Keys()[0], n.Items()[0]
	switch {
	case form.Raw() == "choice":
		return nil, ends
	case !slices.Contains(forms, form.Raw()):
		d := form.Errorf("%s: there is no range %q", key.Raw(), form.Raw()).WithNote("ranges are log, uniform and int with " +
			"two numbers, and choice with a list of values")
		if d.Suggestion = diag.Suggest(form.Raw(), forms); strings.HasPrefix(form.Raw(), "log") {
			d.Suggestion = "log"
		}
		r.AddFault(d)
		return nil, nil
	case !ends.IsList() || len(ends.Items()) != 2:
		found := ends.Describe()
		if ends.IsList() {
			found = diag.Count(len(ends.Items()), "value")
		}
		r.AddFault(ends.Errorf("%s: %s needs two numbers, not %s", key.Raw(), form.Raw(), found).
			WithNote("write {%s: [lowest, highest]}", form.Raw()))
		return nil, nil
	}
	number := schema.Row{Type: schema.Real}
	if form.Raw() == "int" {
		number.Type = schema.Whole
	}
	low, one := r.Value(&number, key.Raw(), ends.Items()[0])
	high, two := r.Value(&number, key.Raw(), ends.Items()[1])
	if !one || !two {
		return nil, nil
	}
	found := &Range{Form: form.Raw(), Low: low.Float(), High: high.Float(), Pos: n.Pos()}
	if form.Raw() == "int" {
		found.Low, found.High = float64(low.Int()), float64(high.Int())
	}
	switch {
	case found.Form == "log" && found.Low <= 0:
		r.AddFault(ends.Items()[0].Errorf("%s: a logarithmic range needs numbers above 0, not %v", key.Raw(), found.Low).
			WithNote("uniform may contain 0"))
	case found.High <= found.Low:
		r.AddFault(ends.Errorf("%s: the range from %v to %v is empty", key.Raw(), found.Low, found.High).
			WithNote("the first number must be smaller than the second"))
	default:
		return found, ends
	}
	return nil, nil
}
