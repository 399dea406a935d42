package serve

import (
	"encoding/json"
	"errors"
	"reflect"
	"slices"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// cursor reads JSON without building values, so that callers can bound what they build. The data
// must be valid JSON.
type cursor struct {
	data []byte
	at   int
}

// newCursor checks that data is valid JSON.
func newCursor(data []byte) (*cursor, error) {
	if !json.Valid(data) {
		err := json.Unmarshal(data, &struct{}{}) // it contains the position
		return nil, status.Errorf(codes.InvalidArgument, "cannot parse the JSON of the body: %v", err)
	}
	return &cursor{data: data}, nil
}

// requestMembers are the names of members that the server reads.
var requestMembers = []string{"instances", "images", "id", "parameters", "inputs", "outputs", "name", "datatype", "shape", "data"}

// members calls member with the name of each member of an object; member must consume the value. It
// returns false if the value is not an object, and an error if one of requestMembers is given twice:
// readers of JSON disagree on which counts. null counts as an empty object.
func (c *cursor) members(member func(name string) error) (object bool, err error) {
	if c.null() {
		return true, nil
	}
	if !c.next('{') {
		return false, nil
	}
	var seen []string
	for !c.next('}') {
		c.next(',')
		c.space()
		var name string
		if text := c.skip(); len(text) <= maxMember {
			_ = json.Unmarshal(text, &name) // it is a valid string
		}
		c.next(':')
		if slices.Contains(seen, name) {
			return true, status.Errorf(codes.InvalidArgument, "%q is given twice in one object", name)
		}
		if slices.Contains(requestMembers, name) {
			seen = append(seen, name)
		}
		if err := member(name); err != nil {
			return true, err
		}
	}
	return true, nil
}

// elements calls element for each element of an array, counted from 0; element must consume the
// value. It returns false if the value is not an array. null counts as an empty array.
func (c *cursor) elements(element func(i int) error) (array bool, err error) {
	if c.null() {
		return true, nil
	}
	if !c.next('[') {
		return false, nil
	}
	for i := 0; !c.next(']'); i++ {
		c.next(',')
		if err := element(i); err != nil {
			return true, err
		}
	}
	return true, nil
}

// null consumes the value if it is null.
func (c *cursor) null() bool {
	if c.peek() != 'n' {
		return false
	}
	c.at += len("null")
	return true
}

// skip consumes a value and returns its text.
func (c *cursor) skip() []byte {
	c.space()
	from, depth := c.at, 0
	for c.at < len(c.data) {
		switch c.data[c.at] {
		case '"':
			c.text()
		case '[', '{':
			depth++
			c.at++
		case ']', '}':
			if depth == 0 { // after a number
				return c.data[from:c.at]
			}
			depth--
			c.at++
		case ',', ' ', '\n', '\t', '\r':
			if depth == 0 { // after a number
				return c.data[from:c.at]
			}
			c.at++
			continue
		default:
			c.at++
			continue
		}
		if depth == 0 {
			break
		}
	}
	return c.data[from:c.at]
}

// text consumes a string.
func (c *cursor) text() {
	for c.at++; c.at < len(c.data) && c.data[c.at] != '"'; c.at++ {
		if c.data[c.at] == '\\' {
			c.at++
		}
	}
	c.at++
}

// maxMember is the maximum size in bytes of a name, and of a value that is decoded as a whole.
const maxMember = 64 << 10

// decode consumes a small value into v. path names it in errors.
func (c *cursor) decode(path string, v any) error {
	text := c.skip()
	if len(text) > maxMember {
		return status.Errorf(codes.InvalidArgument, "%s is longer than %d bytes", path, maxMember)
	}
	err := json.Unmarshal(text, v)
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok { // it is JSON, but of another type
		if wrong.Field != "" {
			path += "." + wrong.Field
		}
		return status.Errorf(codes.InvalidArgument, "%s must be %s, not %s", path, kindInJSON(wrong.Type), wrong.Value)
	}
	if err != nil {
		return status.Errorf(codes.InvalidArgument, "%s: %v", path, err)
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

// next consumes a character if it is the next one.
func (c *cursor) next(char byte) bool {
	if c.peek() != char {
		return false
	}
	c.at++
	return true
}

func (c *cursor) peek() byte {
	if c.space(); c.at < len(c.data) {
		return c.data[c.at]
	}
	return 0
}

func (c *cursor) space() {
	for c.at < len(c.data) && (c.data[c.at] == ' ' || c.data[c.at] == '\n' || c.data[c.at] == '\t' || c.data[c.at] == '\r') {
		c.at++
	}
}
