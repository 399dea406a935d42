package console

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
)

// Bounds of flags that have none of their own.
const (
	AboveZero = math.SmallestNonzeroFloat64
	Most      = 1 << 30
)

// Limit bounds the numbers that flags of numbers, or of lists of them, take: what
// lies outside is wrong usage. A default may lie outside and then stands for a
// flag that is not given.
func Limit(flags *pflag.FlagSet, low, high float64, names ...string) {
	for _, name := range names {
		f := flags.Lookup(name)
		f.Value = limited{f.Value, low, high}
		if v, err := strconv.ParseFloat(f.DefValue, 64); f.DefValue == "[]" || err == nil && v < low {
			f.DefValue = "" // stands for what the text of the flag says
		}
	}
}

// limited is the value of a flag that takes numbers from low to high.
type limited struct {
	pflag.Value
	low, high float64
}

// Set takes the numbers of the command line.
func (l limited) Set(text string) error {
	for part := range strings.SplitSeq(text, ",") {
		v, err := strconv.ParseFloat(strings.TrimSpace(part), 64)
		if err != nil {
			return fmt.Errorf("%q is no number", part)
		}
		if !(l.low <= v && v <= l.high) {
			return fmt.Errorf("it must be %s", l.bounds(v))
		}
	}
	if err := l.Value.Set(text); err != nil {
		return fmt.Errorf("it must be a whole number")
	}
	return nil
}

func (l limited) bounds(v float64) string {
	number := func(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }
	switch {
	case l.high >= Most && v > l.high:
		return "at most " + number(l.high)
	case l.low == AboveZero && l.high >= Most:
		return "above 0"
	case l.low == AboveZero:
		return "above 0 and at most " + number(l.high)
	case l.high >= Most:
		return "at least " + number(l.low)
	}
	return "between " + number(l.low) + " and " + number(l.high)
}
