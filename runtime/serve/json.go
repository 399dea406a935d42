// The reader of JSON in requests: objects, lists, and tensors of numbers.

package serve

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// jsonReader reads JSON without building values, so that callers can bound what they build.
type jsonReader struct {
	*jsontext.Decoder
	data []byte
}

func newJSONReader(data []byte) *jsonReader {
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf")) // a byte order mark, as some programs of Windows write it
	// The decoder would keep all names of an object to find duplicates; members checks those that matter.
	return &jsonReader{jsontext.NewDecoder(bytes.NewBuffer(data), jsontext.AllowDuplicateNames(true)), data}
}

// maxMember is the maximum size in bytes of a name, and of a value that is decoded as a whole.
const maxMember = 64 << 10

// requestMembers are the names of members that the server reads.
var requestMembers = []string{"instances", "images", "id", "parameters", "inputs", "outputs", "name", "datatype",
	"shape", "data"}

// value reads a value and returns its text.
func (r *jsonReader) value() ([]byte, error) {
	v, err := r.ReadValue()
	if err != nil {
		return nil, notJSON(err)
	}
	end := r.InputOffset()
	return r.data[end-int64(len(v)) : end], nil
}

func notJSON(err error) error {
	return invalid("cannot parse the JSON of the body: %v", err)
}

// end returns an error if anything follows the values that were read.
func (r *jsonReader) end() error {
	switch _, err := r.ReadToken(); err {
	case io.EOF:
		return nil
	case nil:
		return notJSON(errors.New("it has more than one value"))
	default:
		return notJSON(err)
	}
}

// open reads the begin of an object or list. It returns false for null, which counts as empty, and an error with the
// text problem for a value of another kind.
func (r *jsonReader) open(begin jsontext.Kind, problem string) (bool, error) {
	if r.PeekKind() == begin {
		_, err := r.ReadToken()
		return true, err
	}
	text, err := r.value()
	if err == nil && string(text) != "null" {
		err = invalid("%s", problem)
	}
	return false, err
}

// members calls member with the name of each member of an object; member must read the value. It
// returns an error if one of requestMembers is given twice: readers of JSON disagree on which counts.
func (r *jsonReader) members(problem string, member func(name string) error) error {
	if object, err := r.open('{', problem); err != nil || !object {
		return err
	}
	var seen []string
	for r.PeekKind() != '}' {
		text, err := r.value()
		if err != nil {
			return err
		}
		name := ""
		if len(text) <= maxMember {
			_ = json.Unmarshal(text, &name) // it is a valid string
		}
		if slices.Contains(seen, name) {
			return invalid("%q is given twice in one object", name)
		}
		if slices.Contains(requestMembers, name) {
			seen = append(seen, name)
		}
		if err := member(name); err != nil {
			return err
		}
	}
	_, err := r.ReadToken()
	return err
}

// elements calls element for each element of a list, counted from 0; element must read the value.
func (r *jsonReader) elements(problem string, element func(i int) error) error {
	if list, err := r.open('[', problem); err != nil || !list {
		return err
	}
	for i := 0; r.PeekKind() != ']'; i++ {
		if err := element(i); err != nil {
			return err
		}
	}
	_, err := r.ReadToken()
	return err
}

// decode reads a small value into v. path names it in errors.
func (r *jsonReader) decode(path string, v any) error {
	text, err := r.value()
	if err != nil {
		return err
	}
	if len(text) > maxMember {
		return invalid("%s is longer than %d bytes", path, maxMember)
	}
	err = json.Unmarshal(text, v)
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok { // it is JSON, but of another type
		if wrong.Field != "" {
			path += "." + wrong.Field
		}
		return invalid("%s must be %s, not %s", path, kindInJSON(wrong.Type), wrong.Value)
	}
	if err != nil {
		return invalid("%s: %v", path, err)
	}
	return nil
}

// kindInJSON names the JSON values that can be decoded into a type.
func kindInJSON(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice:
		return "a list"
	case reflect.Struct, reflect.Map:
		return "an object"
	}
	return "a whole number"
}

// countNumbers returns an upper bound of the numbers in JSON lists of numbers.
func countNumbers(data []byte) int { return bytes.Count(data, []byte{','}) + 1 }

func parseFloat(text []byte) (float32, error) {
	v, err := strconv.ParseFloat(string(text), 32)
	return float32(v), err
}

// checkEvery is the number of values after which a tensor reader checks its deadline.
const checkEvery = 1 << 14

// tensorReader reads a tensor from JSON, as nested lists or flat from any level on, in row-major order.
type tensorReader[T any] struct {
	*jsonReader
	ctx    context.Context
	values []T
	path   []int // indices of the enclosing lists
	parse  func([]byte) (T, error)
}

// readNumbers reads a tensor of the given shape and appends it to values. A first length of -1 allows any
// length up to limit. It returns the first length. Errors start with the position in the tensor; if the
// context ends, the error is that of the context.
func readNumbers[T any](ctx context.Context, data []byte, shape []int64, limit int, values []T,
	parse func([]byte) (T, error)) (_ []T, first int, err error) {
	r := tensorReader[T]{jsonReader: newJSONReader(data), ctx: ctx, parse: parse, values: values}
	first, err = r.list(shape, limit)
	return r.values, first, err
}

func (r *tensorReader[T]) fail(format string, args ...any) error {
	index := ""
	for _, i := range r.path {
		index += fmt.Sprintf("[%d]", i)
	}
	return fmt.Errorf("%s: %s", index, fmt.Sprintf(format, args...))
}

// list reads one list and returns its length.
func (r *tensorReader[T]) list(shape []int64, limit int) (int, error) {
	if r.PeekKind() != '[' {
		return 0, r.fail("this must be a list")
	}
	if _, err := r.ReadToken(); err != nil {
		return 0, err
	}
	flat := len(shape) == 1 || shape[0] >= 0 && r.PeekKind() != '['
	want := shape[0]
	if flat {
		for _, d := range shape[1:] {
			want *= d
		}
	}
	depth, count := len(r.path), 0
	r.path = append(r.path, 0)
	for r.PeekKind() != ']' {
		r.path[depth] = count
		if count++; want >= 0 && int64(count) > want || want < 0 && count > limit {
			break
		}
		var err error
		if flat {
			err = r.number()
		} else {
			_, err = r.list(shape[1:], limit)
		}
		if err != nil {
			return 0, err
		}
	}
	r.path = r.path[:depth]
	switch {
	case want < 0 && count > limit:
		return 0, r.fail("more than %d elements: this server accepts no more", limit)
	case want >= 0 && int64(count) > want:
		return 0, r.fail("more than %d values, which the shape needs", want)
	case want >= 0 && int64(count) < want:
		return 0, r.fail("%d values, the shape needs %d", count, want)
	}
	_, err := r.ReadToken()
	return count, err
}

func (r *tensorReader[T]) number() error {
	text, err := r.ReadValue()
	if err != nil {
		return err
	}
	v, err := r.parse(text)
	if err != nil {
		return r.fail("%.40s is not a number, or is out of range", text)
	}
	r.values = append(r.values, v)
	if len(r.values)%checkEvery == 0 {
		return r.ctx.Err()
	}
	return nil
}
