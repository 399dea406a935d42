// Flags that several commands share, with bounds for their values.

package console

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/miplc/miplc/data/bagfile"
	"github.com/miplc/miplc/data/rawfile"
	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/language/schema"
)

// Bounds for flags without natural bounds.
const (
	AboveZero = math.SmallestNonzeroFloat64
	Most      = 1 << 30
)

// Limit bounds the values of flags with numbers or lists of numbers; other values are usage errors.
// A default may be outside and then means that the flag is not set.
func Limit(flags *pflag.FlagSet, low, high float64, names ...string) {
	for _, name := range names {
		f := flags.Lookup(name)
		f.Value = setter{f.Value, bounded(f.Value, low, high)}
		if v, err := strconv.ParseFloat(f.DefValue, 64); f.DefValue == "[]" || err == nil && v < low {
			f.DefValue = "" // described in the usage text
		}
	}
}

// setter is the value of a flag whose text is checked first.
type setter struct {
	pflag.Value
	set func(text string) error
}

// Set checks and parses the value.
func (s setter) Set(text string) error { return s.set(text) }

// OneOf limits the values of a flag to known words. Its default may be another one.
func OneOf(flags *pflag.FlagSet, name string, known ...string) {
	Check(flags, name, func(what, word string) error { return diag.CheckWord(what, word, known) })
}

// Check checks the values of a flag, except its default. check gets the flag as what, for messages.
func Check(flags *pflag.FlagSet, name string, check func(what, word string) error) {
	f := flags.Lookup(name)
	to := f.Value
	f.Value = setter{to, func(word string) error {
		if word != f.DefValue {
			if err := check("--"+name, word); err != nil {
				return diag.Invalid(err)
			}
		}
		return to.Set(word)
	}}
}

// bounded returns a function that sets a number or a list of numbers within bounds.
func bounded(to pflag.Value, low, high float64) func(text string) error {
	span, above := schema.Closed(low, high), schema.AtLeast(low)
	if low == AboveZero {
		span, above = schema.PositiveUpTo(high), schema.Above(0)
	}
	return func(text string) error {
		for part := range strings.SplitSeq(text, ",") {
			v, err := strconv.ParseFloat(strings.TrimSpace(part), 64)
			if err != nil {
				return fmt.Errorf("%q is not a number", part)
			}
			switch {
			case high >= Most && !above.Has(v):
				return fmt.Errorf("it must be %s", above)
			case !span.Has(v):
				return fmt.Errorf("it must be %s", span)
			}
		}
		if to.Set(text) != nil {
			return errors.New("it must be a whole number")
		}
		return nil
	}
}

// OutputFlag adds the required flag --output. kind is FILE or DIR.
func OutputFlag(cmd *cobra.Command, to *string, kind, usage string) {
	cmd.Flags().StringVarP(to, "output", "o", "", usage+" (required)")
	cmd.PreRunE = func(*cobra.Command, []string) error {
		if *to == "" {
			return Usagef("%s: -o %s is missing: %s", cmd.CommandPath(), kind, usage)
		}
		return nil
	}
}

// DataFlags adds the flags of commands that search and read data files.
func DataFlags(con *Console, flags *pflag.FlagSet, to *bagfile.Folder, usage string) {
	flags.StringVar(&to.Dir, "data-dir", con.Getenv("MIPLC_DATA"), usage)
	ReadingFlags(flags, &to.Reading)
}

// ReadingFlags adds the flags for reading data files: the maximum size, and which columns of CSV files
// are features.
func ReadingFlags(flags *pflag.FlagSet, to *bagfile.Reading) {
	MaxBytesFlag(flags, &to.MaxBytes)
	ColumnFlags(flags, &to.Columns)
}

// MaxBytesFlag adds the flag for the maximum size of data files.
func MaxBytesFlag(flags *pflag.FlagSet, to *rawfile.Limit) {
	Bytes(flags, (*int64)(to), "max-bytes", "maximum uncompressed size of a data file, e.g. 16GiB (default: 4GiB, or "+
		"less if less memory is available)")
}

// LibraryFlag adds the flag for the path of the onnxruntime library.
func LibraryFlag(flags *pflag.FlagSet, to *string) {
	flags.StringVar(to, "library", "", "path of the onnxruntime library or its folder (default: the first usable one, "+
		"see miplc doctor)")
}

// ColumnFlags adds the flags that say which columns of CSV files are features.
func ColumnFlags(flags *pflag.FlagSet, to *bagfile.Columns) {
	flags.StringSliceVar(&to.Ignore, "ignore-columns", nil, "columns of CSV files to leave out, e.g. patient,tile")
	flags.StringSliceVar(&to.Coordinates, "coordinate-columns", nil,
		"columns of CSV files with the x and y coordinates of the instances (default: x,y)")
	flags.StringSliceVar(&to.Features, "feature-columns", nil, "columns of CSV files to keep as features although "+
		"their names, such as slide_id, time or row, look like identifiers or coordinates")
}

// BagFlag adds a flag that takes the name of a bag or, if the bags have no names, its number, from 1. It checks that
// the text may be one of them; data.Dataset.Find knows the bags. A bag may have the name 0.
func BagFlag(flags *pflag.FlagSet, to *string, usage string) {
	flags.StringVar(to, "bag", "", usage)
	f := flags.Lookup("bag")
	f.Value = setter{f.Value, func(text string) error {
		if n, err := strconv.Atoi(text); text == "" || err == nil && n < 0 {
			return errors.New("it must be a name or a number of at least 1")
		}
		*to = text
		return nil
	}}
}

// Bytes adds a flag that takes a number of bytes.
func Bytes(flags *pflag.FlagSet, to *int64, name, usage string) {
	flags.Var((*size)(to), name, usage)
	flags.Lookup(name).DefValue = "" // the usage text describes the default
}

// Duration adds a flag that takes times of at least low.
func Duration(flags *pflag.FlagSet, to *time.Duration, name string, value, low time.Duration, usage string) {
	flags.DurationVar(to, name, value, usage)
	f := flags.Lookup(name)
	f.Value = setter{f.Value, func(text string) error {
		v, err := time.ParseDuration(text)
		if err != nil {
			return errors.New("write a time such as 500ms or 10s")
		}
		if v < low || v > 24*time.Hour {
			return fmt.Errorf("it must be between %v and 24h", low)
		}
		*to = v
		return nil
	}}
}

// size is the value of a flag for a number of bytes.
type size int64

func (s *size) Type() string { return "size" }

func (s *size) String() string {
	if *s == 0 {
		return ""
	}
	return strconv.FormatInt(int64(*s), 10)
}

var units = []struct {
	name  string
	bytes float64
}{{"kib", 1 << 10}, {"mib", 1 << 20}, {"gib", 1 << 30}, {"tib", 1 << 40}, {"kb", 1e3}, {"mb", 1e6}, {"gb", 1e9},
	{"tb", 1e12}, {"b", 1}}

// Set reads a number with a unit, or of bytes.
func (s *size) Set(text string) error {
	number, unit := strings.ToLower(strings.TrimSpace(text)), 1.0
	for _, u := range units {
		if rest, found := strings.CutSuffix(number, u.name); found {
			number, unit = strings.TrimSpace(rest), u.bytes
			break
		}
	}
	v, err := strconv.ParseFloat(number, 64)
	if err != nil || !(v*unit >= 1 && v*unit <= 1<<50) {
		return fmt.Errorf("write a size such as 500MB or 16GiB")
	}
	*s = size(v * unit)
	return nil
}
