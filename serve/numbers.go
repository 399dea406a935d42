package serve

import (
	"bytes"
	"context"
	"fmt"
	"strconv"
)

// countNumbers returns an upper bound of the numbers in JSON lists of numbers.
func countNumbers(data []byte) int { return bytes.Count(data, []byte{','}) + 1 }

// readNumbers reads a tensor from JSON, as nested lists of the given shape or flat from any level
// on, in row-major order, and appends it to values. A first length of -1 allows any length up to
// limit. It returns the first length. Errors start with the position in the tensor; if the context
// ends, the error is that of the context. The data must be one valid JSON value.
func readNumbers[T any](ctx context.Context, data []byte, shape []int64, limit int, values []T, parse func([]byte) (T, error)) (_ []T, first int, err error) {
	r := reader[T]{cursor: cursor{data: data}, ctx: ctx, parse: parse, values: values}
	first, err = r.list(shape, limit)
	return r.values, first, err
}

func parseFloat(text []byte) (float32, error) {
	v, err := strconv.ParseFloat(string(text), 32)
	return float32(v), err
}

func parseInt(text []byte) (int64, error) { return strconv.ParseInt(string(text), 10, 64) }

// checkEvery is the number of values after which a reader checks its deadline.
const checkEvery = 1 << 14

type reader[T any] struct {
	cursor
	ctx    context.Context
	values []T
	path   []int // indices of the enclosing lists
	parse  func([]byte) (T, error)
}

func (r *reader[T]) fail(format string, args ...any) error {
	index := ""
	for _, i := range r.path {
		index += fmt.Sprintf("[%d]", i)
	}
	return fmt.Errorf("%s: %s", index, fmt.Sprintf(format, args...))
}

// list reads one list and returns its length.
func (r *reader[T]) list(shape []int64, limit int) (int, error) {
	if !r.next('[') {
		return 0, r.fail("this must be a list")
	}
	flat := len(shape) == 1 || shape[0] >= 0 && r.peek() != '['
	want := shape[0]
	if flat {
		for _, d := range shape[1:] {
			want *= d
		}
	}
	depth := len(r.path)
	r.path = append(r.path, 0)
	count := 0
	for !r.next(']') {
		if count > 0 {
			r.next(',')
		}
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
	return count, nil
}

func (r *reader[T]) number() error {
	r.space()
	from := r.at
	for r.at < len(r.data) && r.data[r.at] != ',' && r.data[r.at] != ']' && r.data[r.at] > ' ' {
		r.at++
	}
	text := r.data[from:r.at]
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
