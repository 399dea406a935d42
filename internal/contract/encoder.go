// The description of an encoder in a model file.

package contract

import (
	"crypto/sha256"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/miplc/miplc/internal/onnxpb"
)

// Encoder describes the part of a model file that computes features of images, in a file that
// starts with an encoder. The first nodes of the graph are that part: preprocessing of
// the images, then the nodes of the encoder file. Its values have the prefix EncoderPrefix.
type Encoder struct {
	EncoderInput
	Nodes    int    `json:"nodes"`       // first nodes of the graph
	Features int    `json:"features"`    // of an image
	File     string `json:"file_sha256"` // of the encoder file
	Output   string `json:"output"`      // value of the encoder file that is the features
}

// EncoderInput is how an encoder gets an image: resized to Size x Size pixels with levels from 0 to
// 1, in Order, minus Mean, divided by Std.
type EncoderInput struct {
	Size  int       `json:"size"`
	Mean  []float64 `json:"mean"` // by channel, in Order
	Std   []float64 `json:"std"`
	Order string    `json:"order"` // RGB or BGR
}

// Values of EncoderInput.Order. The input of a model file is always in the order RGB.
const (
	RGB = "rgb"
	BGR = "bgr"
)

// Names of values of the encoder part.
const (
	EncoderPrefix   = "encoder/"
	EncoderFeatures = EncoderPrefix + "features" // float32 [n, Features]: the result
)

// maxImageSize is the largest side of the images of an encoder.
const maxImageSize = 2048

// InputShape returns the shape of an instance of a model that starts with the encoder.
func (e *Encoder) InputShape() []int { return []int{3, e.Size, e.Size} }

// Identity returns the SHA-256, in hexadecimal, of everything that determines the features of an
// image: the encoder file, its output and its input.
func (e *Encoder) Identity() string {
	text := fmt.Sprintf("%+v %s %q", e.EncoderInput, e.File, e.Output)
	return fmt.Sprintf("%x", sha256.Sum256([]byte(text)))
}

func (e *Encoder) check(shape []int) error {
	bad := func(list []float64, ok func(float64) bool) bool {
		return len(list) != 3 || slices.ContainsFunc(list, func(v float64) bool { return !ok(v) })
	}
	switch {
	case e.Size < 1 || e.Size > maxImageSize || !slices.Equal(shape, e.InputShape()):
		return fmt.Errorf("%s: images of size %d, but an instance has the shape %v", KeyEncoder, e.Size, shape)
	case e.Features < 1 || e.Features > maxExtent || e.Nodes < 1:
		return fmt.Errorf("%s: %d nodes for %d features", KeyEncoder, e.Nodes, e.Features)
	case bad(e.Mean, func(v float64) bool { return math.Abs(v) <= math.MaxFloat32 }) || bad(e.Std, func(v float64) bool {
		return v > 0 && v <= math.MaxFloat32
	}):
		return fmt.Errorf("%s: mean %v and std %v are not three numbers each", KeyEncoder, e.Mean, e.Std)
	case e.Order != RGB && e.Order != BGR:
		return fmt.Errorf("%s: order %q, expected %s or %s", KeyEncoder, e.Order, RGB, BGR)
	}
	return nil
}

// IsEncoderOp reports whether the encoder part may use an op of the standard domain.
func IsEncoderOp(op string) bool { return onnxpb.Ops[op].Use != 0 && op != "Loop" }

// Part returns the encoder part of the graph of a model file.
func (e *Encoder) Part(g *onnxpb.GraphProto) *onnxpb.GraphProto {
	part := &onnxpb.GraphProto{Node: g.GetNode()[:min(e.Nodes, len(g.GetNode()))]}
	for _, t := range g.GetInitializer() {
		if strings.HasPrefix(t.GetName(), EncoderPrefix) {
			part.Initializer = append(part.Initializer, t)
		}
	}
	return part
}

// checkPart checks that the encoder part of a graph is separate from the rest.
func (e *Encoder) checkPart(g *onnxpb.GraphProto) error {
	if e.Nodes > len(g.GetNode()) {
		return fmt.Errorf("%s: the encoder has %d nodes, the file %d", KeyEncoder, e.Nodes, len(g.GetNode()))
	}
	inside := func(name string) bool { return strings.HasPrefix(name, EncoderPrefix) }
	for i, n := range g.GetNode() {
		encoder := i < e.Nodes
		for _, in := range n.Reads() {
			allowed := in == "" || in == EncoderFeatures || !inside(in) && in != Instances
			if encoder {
				allowed = in == "" || in == Instances || inside(in)
			}
			if !allowed {
				return fmt.Errorf("%s: node %d %q reads %q across the border of the encoder", KeyEncoder, i, n.GetName(), in)
			}
		}
		for _, out := range n.GetOutput() {
			if out != "" && inside(out) != encoder {
				return fmt.Errorf("%s: node %d %q makes %q across the border of the encoder", KeyEncoder, i, n.GetName(), out)
			}
		}
	}
	return nil
}
