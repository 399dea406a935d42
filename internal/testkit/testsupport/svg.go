// Checks that figures are SVG that all renderers draw equally.

package testsupport

import (
	"bytes"
	"encoding/base64"
	"encoding/xml"
	"errors"
	"fmt"
	"image/png"
	"io"
	"math"
	"regexp"
	"strconv"
	"strings"
)

const namespace = "http://www.w3.org/2000/svg"

var (
	color    = regexp.MustCompile(`^(none|currentColor|white|black|#[0-9A-Fa-f]{3}|#[0-9A-Fa-f]{6})$`)
	numeric  = regexp.MustCompile(`^[-+]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]+)?(px|pt|in|mm|%)?$`)
	splitter = regexp.MustCompile(`[\s,()]+`)
	command  = regexp.MustCompile(`[MmLlHhVvCcSsQqTtAaZz]`)
)

// CheckSVG returns the first error in a figure: XML that is not well-formed, a root that is not an svg
// element of positive size, an element that is not SVG, an invalid colour or number, an embedded
// image that cannot be decoded.
func CheckSVG(figure []byte) error {
	d := xml.NewDecoder(bytes.NewReader(figure))
	depth, roots := 0, 0
	for {
		token, err := d.Token()
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
		switch e := token.(type) {
		case xml.StartElement:
			if depth++; depth == 1 {
				roots++
				if err := checkRoot(e); err != nil {
					return err
				}
			}
			if err := checkElement(e); err != nil {
				line, _ := d.InputPos()
				return fmt.Errorf("line %d: <%s>: %w", line, e.Name.Local, err)
			}
		case xml.EndElement:
			depth--
		}
	}
	if roots != 1 {
		return fmt.Errorf("%d root elements", roots)
	}
	return nil
}

func checkRoot(e xml.StartElement) error {
	if e.Name.Local != "svg" || e.Name.Space != namespace {
		return fmt.Errorf("the root is %s in namespace %q", e.Name.Local, e.Name.Space)
	}
	for _, a := range e.Attr {
		if a.Name.Local != "viewBox" {
			continue
		}
		box, err := numbers(a.Value)
		if err != nil {
			return err
		}
		if len(box) != 4 || box[2] <= 0 || box[3] <= 0 {
			return fmt.Errorf("viewBox %q is not four numbers with a positive size", a.Value)
		}
		return nil
	}
	return errors.New("there is no viewBox")
}

func checkElement(e xml.StartElement) error {
	if e.Name.Space != namespace {
		return fmt.Errorf("an element of namespace %q", e.Name.Space)
	}
	for _, a := range e.Attr {
		if err := checkAttribute(a.Name.Local, a.Value); err != nil {
			return fmt.Errorf("%s=%q: %w", a.Name.Local, a.Value, err)
		}
	}
	return nil
}

func checkAttribute(name, value string) error {
	switch name {
	case "style":
		for property := range strings.SplitSeq(strings.Trim(value, "; \n"), ";") {
			if strings.TrimSpace(property) == "" {
				continue
			}
			key, v, found := strings.Cut(property, ":")
			if !found {
				return fmt.Errorf("%q is not a property", property)
			}
			if err := checkAttribute(strings.TrimSpace(key), strings.TrimSpace(v)); err != nil {
				return err
			}
		}
	case "fill", "stroke", "color", "stop-color":
		if !color.MatchString(value) {
			return errors.New("not a colour")
		}
	case "d":
		_, err := numbers(command.ReplaceAllString(value, " "))
		return err
	case "transform":
		_, err := numbers(regexp.MustCompile(`[a-z]+[XY]?\(`).ReplaceAllString(value, " "))
		return err
	case "stroke-dasharray":
		if value == "none" {
			return nil
		}
		fallthrough
	case "x", "y", "x1", "x2", "y1", "y2", "dx", "dy", "cx", "cy", "r", "rx", "ry", "width", "height", "points", "viewBox",
		"textLength",
		"font-size", "stroke-width", "stroke-dashoffset", "opacity", "fill-opacity", "stroke-opacity":
		list, err := numbers(value)
		if err == nil && len(list) == 0 {
			err = errors.New("there is no number")
		}
		return err
	case "href":
		return checkImage(value)
	}
	return nil
}

func numbers(text string) (list []float64, err error) {
	for word := range strings.SplitSeq(strings.TrimSpace(splitter.ReplaceAllString(text, " ")), " ") {
		if word == "" {
			continue
		}
		if !numeric.MatchString(word) {
			return nil, fmt.Errorf("%q is not a finite number", word)
		}
		v, err := strconv.ParseFloat(strings.TrimRight(word, "pxtinm%"), 64)
		if err != nil || math.Abs(v) > 1e7 {
			return nil, fmt.Errorf("%q is not a number that renderers take", word)
		}
		list = append(list, v)
	}
	return list, nil
}

func checkImage(href string) error {
	text, found := strings.CutPrefix(href, "data:image/png;base64,")
	if !found {
		return errors.New("a figure refers to something outside of it")
	}
	image, err := base64.StdEncoding.DecodeString(text)
	if err == nil {
		_, err = png.Decode(bytes.NewReader(image))
	}
	return err
}
