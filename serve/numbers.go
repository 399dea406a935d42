package serve

import (
	"bytes"
	"fmt"
	"strconv"
)

// readNumbers reads a tensor from JSON: nested lists as the shape has them, or flat from
// any level on, in row-major order. A first length of -1 is whatever there is up to most.
// It returns the first length. Errors begin with the place in the tensor. The data must be
// one value of valid JSON.
func readNumbers[T any](data []byte, shape []int64, most int, parse func([]byte) (T, error)) (values []T, first int, err error) {
	r := reader[T]{data: data, parse: parse, values: make([]T, 0, bytes.Count(data, []byte{','})+1)}
	first, err = r.list(shape, most)
	return r.values, first, err
}

func parseFloat(text []byte) (float32, error) {
	v, err := strconv.ParseFloat(string(text), 32)
	return float32(v), err
}

func parseInt(text []byte) (int64, error) { return strconv.ParseInt(string(text), 10, 64) }

type reader[T any] struct {
	data   []byte
	at     int
	values []T
	path   []int // indices of the lists around
	parse  func([]byte) (T, error)
}

func (r *reader[T]) fail(format string, args ...any) error {
	place := ""
	for _, i := range r.path {
		place += fmt.Sprintf("[%d]", i)
	}
	return fmt.Errorf("%s: %s", place, fmt.Sprintf(format, args...))
}

// list reads one list and returns its length.
func (r *reader[T]) list(shape []int64, most int) (int, error) {
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
		if count++; want >= 0 && int64(count) > want || want < 0 && count > most {
			break
		}
		var err error
		if flat {
			err = r.number()
		} else {
			_, err = r.list(shape[1:], most)
		}
		if err != nil {
			return 0, err
		}
	}
	r.path = r.path[:depth]
	switch {
	case want < 0 && count > most:
		return 0, r.fail("more than %d elements: this server takes no more", most)
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
		return r.fail("%.40s is no number that fits", text)
	}
	r.values = append(r.values, v)
	return nil
}

// next takes a character if it comes next.
func (r *reader[T]) next(c byte) bool {
	if r.peek() != c {
		return false
	}
	r.at++
	return true
}

func (r *reader[T]) peek() byte {
	if r.space(); r.at < len(r.data) {
		return r.data[r.at]
	}
	return 0
}

func (r *reader[T]) space() {
	for r.at < len(r.data) && (r.data[r.at] == ' ' || r.data[r.at] == '\n' || r.data[r.at] == '\t' || r.data[r.at] == '\r') {
		r.at++
	}
}
