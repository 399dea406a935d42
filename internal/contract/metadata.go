// The metadata of a model file.

package contract

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"github.com/miplc/miplc/internal/ndarray"
	"github.com/miplc/miplc/internal/onnxpb"
)

// Metadata is the description of a model in its file.
type Metadata struct {
	Contract      string          `json:"contract"`          // ContractBag or ContractBatch
	Version       string          `json:"version"`           // version of miplc that wrote the file
	Classes       []string        `json:"classes"`           // in the order of the probabilities
	InputShape    []int           `json:"input_shape"`       // of one instance
	Columns       *Columns        `json:"columns,omitempty"` // of the CSV file with the training bags; nil: unknown
	Normalization string          `json:"normalization"`     // "none", "training" or "all"; it is part of the graph
	SpecSHA256    string          `json:"spec_sha256"`       // of the full spec
	DataSHA256    string          `json:"data_sha256"`       // of the dataset; empty: untrained
	Seed          uint64          `json:"seed"`              // of the run
	Split         json.RawMessage `json:"split,omitempty"`   // how the training bags were chosen; empty: untrained
	// engine that trained the parameters; "none": initial parameters
	Engine string `json:"engine"`
	// Parity has the largest absolute difference measured between each pair of engines. Tolerance is the
	// largest one that counts as agreement; 0: unknown.
	Parity      map[string]float64 `json:"parity"`
	Tolerance   float64            `json:"parity_tolerance,omitempty"`
	Temperature *float64           `json:"temperature,omitempty"` // number that divides the logits in the graph; nil: none
	// a bag has any number of labels, those with a larger probability; nil: one
	Threshold *float64 `json:"threshold,omitempty"`
	// part of the graph that computes features of images; nil: instances are features
	Encoder *Encoder `json:"encoder,omitempty"`
	// how instances are made from images, see imagebags.RecipeOf; empty: unknown
	Generator string `json:"generator,omitempty"`
	// BackendORT, BackendONNXGo: back ends that can run the file
	Backends []string `json:"backends"`

	// ClassAttention reports that predictions have an attention score of each instance for each class. Get
	// reads it from the graph.
	ClassAttention bool `json:"class_attention,omitempty"`
}

// Columns are the columns of a CSV file of bags.
type Columns struct {
	Features      []string `json:"features,omitempty"` // in the order of the model's input; empty: they have no names
	Bag           string   `json:"bag,omitempty"`      // names of the other columns; empty: the default names
	Label         string   `json:"label,omitempty"`
	Candidates    string   `json:"candidates,omitempty"`
	InstanceLabel string   `json:"instance_label,omitempty"`
	Group         string   `json:"group,omitempty"`       // of the groups of bags; empty: none
	Coordinates   []string `json:"coordinates,omitempty"` // of x and y
	// KnownLabels: every label is certain, and a column of candidates is ignored.
	KnownLabels bool `json:"known_labels,omitempty"`
}

// Limits for the values in a file, so that readers can rely on them.
const (
	maxClasses = 1 << 16
	maxRank    = 4       // of an instance with its leading axis
	maxExtent  = 1 << 24 // elements of one instance
)

// entry is one key of the metadata and its value. Strings are stored unchanged, other types as JSON.
type entry struct {
	key      string
	value    any  // a pointer
	optional bool // readers accept files without it; writers omit empty strings and nil
}

// entries returns the metadata in the order in which they are written.
func (m *Metadata) entries() []entry {
	return []entry{
		{KeyContract, &m.Contract, false}, {KeyVersion, &m.Version, false}, {KeyClasses, &m.Classes, false},
		{KeyInputShape, &m.InputShape, false}, {KeyColumns, &m.Columns, true}, {KeyNormalize, &m.Normalization, false},
		{KeySpecHash, &m.SpecSHA256, false},
		{KeyDataHash, &m.DataSHA256, false}, {KeySeed, &m.Seed, false}, {KeySplit, &m.Split, false}, {KeyEngine, &m.Engine,
			false},
		{KeyTolerance, &m.Tolerance, true}, {KeyBackends, &m.Backends, false}, {KeyParity, &m.Parity, false},
		{KeyTemperature, &m.Temperature, true}, {KeyThreshold, &m.Threshold, true}, {KeyEncoder, &m.Encoder, true},
		{KeyGenerator, &m.Generator, true},
	}
}

func putEntries(model *onnxpb.ModelProto, entries []entry) error {
	for _, e := range entries {
		if text, plain := e.value.(*string); plain {
			if *text != "" || !e.optional {
				model.SetMetadata(e.key, *text)
			}
			continue
		}
		text, err := json.Marshal(e.value) // JSON sorts the keys of maps
		if err != nil {
			return fmt.Errorf("metadata %s: %w", e.key, err)
		}
		if e.optional && string(text) == "null" {
			continue
		}
		model.SetMetadata(e.key, string(text))
	}
	return nil
}

func getEntries(model *onnxpb.ModelProto, entries []entry) error {
	for _, e := range entries {
		text, ok := model.Metadata(e.key)
		if !ok && !e.optional {
			return fmt.Errorf("the file has no %s", e.key)
		}
		if to, plain := e.value.(*string); plain {
			*to = text
		} else if ok {
			if err := json.Unmarshal([]byte(text), e.value); err != nil {
				return fmt.Errorf("%s: %w", e.key, err)
			}
		}
	}
	return nil
}

// Put writes the metadata to a model, with keys in a fixed order.
func (m *Metadata) Put(model *onnxpb.ModelProto) error {
	full := *m
	if full.Parity == nil {
		full.Parity = map[string]float64{}
	}
	return putEntries(model, full.entries())
}

// Get reads and validates the metadata of a model.
func Get(model *onnxpb.ModelProto) (*Metadata, error) {
	switch c, ok := model.Metadata(KeyContract); {
	case !ok:
		return nil, fmt.Errorf("the file has no %s: it was not written by miplc", KeyContract)
	case c != ContractBag && c != ContractBatch:
		return nil, fmt.Errorf("%s is %q, this version of miplc knows %q and %q", KeyContract, c, ContractBag, ContractBatch)
	}
	m := &Metadata{}
	if err := getEntries(model, m.entries()); err != nil {
		return nil, err
	}
	m.ClassAttention = m.Contract == ContractBag &&
		slices.ContainsFunc(model.GetGraph().GetOutput(), func(v *onnxpb.ValueInfoProto) bool {
			return v.GetName() == ClassAttention
		})
	return m, m.check()
}

// check checks the values that determine sizes of tensors.
func (m *Metadata) check() error {
	if n := len(m.Classes); n < 1 || n > maxClasses {
		return fmt.Errorf("%s names %d classes", KeyClasses, n)
	}
	seen := make(map[string]int, len(m.Classes))
	for i, name := range m.Classes {
		if name == "" { // null in the JSON, too
			return fmt.Errorf("%s: class %d has no name", KeyClasses, i+1)
		}
		if first, twice := seen[name]; twice {
			return fmt.Errorf("%s: classes %d and %d are both called %q", KeyClasses, first+1, i+1, name)
		}
		seen[name] = i
	}
	if n := len(m.InputShape); n < 1 || n >= maxRank {
		return fmt.Errorf("%s %v: an instance has 1 to %d axes", KeyInputShape, m.InputShape, maxRank-1)
	}
	if size, ok := ndarray.SizeWithin(m.InputShape, maxExtent); !ok || size == 0 {
		return fmt.Errorf("%s %v is not the shape of an instance", KeyInputShape, m.InputShape)
	}
	if m.Encoder != nil {
		if err := m.Encoder.check(m.InputShape); err != nil {
			return err
		}
	}
	if c := m.Columns; c != nil && c.Features != nil && len(c.Features) != ndarray.Size(m.InputShape) {
		return fmt.Errorf("%s names %d features, an instance has the shape %v", KeyColumns, len(c.Features), m.InputShape)
	}
	if !(m.Tolerance >= 0 && m.Tolerance <= 1) {
		return fmt.Errorf("%s is %v, expected a number from 0 to 1", KeyTolerance, m.Tolerance)
	}
	if t := m.Temperature; t != nil && !(*t > 0 && *t <= math.MaxFloat32) {
		return fmt.Errorf("%s is %v, expected a number above 0", KeyTemperature, *t)
	}
	if t := m.Threshold; t != nil && !(*t > 0 && *t < 1) {
		return fmt.Errorf("%s is %v, expected a number between 0 and 1", KeyThreshold, *t)
	}
	if !slices.Contains([]string{"none", "training", "all"}, m.Normalization) {
		return fmt.Errorf("%s is %q, expected none, training or all", KeyNormalize, m.Normalization)
	}
	if len(m.Backends) == 0 {
		return fmt.Errorf("%s names no back end", KeyBackends)
	}
	return nil
}

// FeatureShape returns the shape of the instances that follow the encoder, or that of the instances
// of a model without one.
func (m *Metadata) FeatureShape() []int {
	if m.Encoder != nil {
		return []int{m.Encoder.Features}
	}
	return m.InputShape
}

// ContractHash returns the SHA-256, in hexadecimal, of everything that callers of a model depend
// on: the signature, the shape of an instance, the class names in order, whether a bag has one
// label or any number of them, and whether there is an attention of each class. A model retrained
// on the same classes has the same hash.
func (m *Metadata) ContractHash() string {
	parts := []any{m.Contract, m.InputShape, m.Classes}
	if m.Threshold != nil {
		parts = append(parts, "any number of labels")
	}
	if m.ClassAttention {
		parts = append(parts, ClassAttention)
	}
	text, err := json.Marshal(parts)
	if err != nil {
		panic(fmt.Sprintf("bug: strings and whole numbers as JSON: %v", err)) // marshalling these types cannot fail
	}
	return fmt.Sprintf("%x", sha256.Sum256(text))
}
