package contract

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"github.com/miplc/miplc/internal/onnxpb"
)

// Metadata is what a file says of itself.
type Metadata struct {
	Contract      string             // ContractBag or ContractBatch
	Version       string             // version of miplc that wrote the file
	Classes       []string           // class names in order of the probabilities
	InputShape    []int              // shape of one instance
	Normalization string             // "none", "training" or "all"
	SpecSHA256    string             // of the full spec
	DataSHA256    string             // of the data set; empty: untrained
	Seed          uint64             // of the run
	Split         json.RawMessage    // how the training bags were chosen; empty: untrained
	Engine        string             // engine that trained the parameters; "none": initial parameters
	Parity        map[string]float64 // pair of engines -> largest absolute difference measured
	Tolerance     float64            // difference up to which engines were taken to agree; 0: not said
	Precision     string             // of the parameters; empty: float32
	Backends      []string           // BackendORT, BackendONNXGo
}

// Limits of what a file may claim, so that a reader can trust the numbers.
const (
	maxClasses = 1 << 16
	maxRank    = 4       // of an instance with its leading axis
	maxExtent  = 1 << 24 // elements of one instance
	maxParams  = 1 << 29 // elements of one parameter: a file holds at most 2 GiB
)

// Put writes the metadata into a model, keys in a fixed order.
func (m *Metadata) Put(model *onnxpb.ModelProto) error {
	split := m.Split
	if len(split) == 0 {
		split = json.RawMessage("null")
	}
	parity := m.Parity
	if parity == nil {
		parity = map[string]float64{}
	}
	for _, kv := range []struct {
		key   string
		value any
	}{
		{KeyContract, m.Contract}, {KeyVersion, m.Version},
		{KeyClasses, m.Classes}, {KeyInputShape, m.InputShape}, {KeyNormalize, m.Normalization},
		{KeySpecHash, m.SpecSHA256}, {KeyDataHash, m.DataSHA256},
		{KeySeed, strconv.FormatUint(m.Seed, 10)}, {KeySplit, split},
		{KeyEngine, m.Engine}, {KeyTolerance, m.Tolerance}, {KeyBackends, m.Backends}, {KeyParity, parity},
	} {
		text, plain := kv.value.(string)
		if !plain {
			// json writes the keys of a map in order.
			b, err := json.Marshal(kv.value)
			if err != nil {
				return fmt.Errorf("metadata %s: %w", kv.key, err)
			}
			text = string(b)
		}
		model.SetMetadata(kv.key, text)
	}
	if m.Precision != "" {
		model.SetMetadata(KeyPrecision, m.Precision)
	}
	return nil
}

// Get reads the metadata of a model and checks that each entry makes sense.
func Get(model *onnxpb.ModelProto) (*Metadata, error) {
	m := &Metadata{}
	var ok bool
	if m.Contract, ok = model.Metadata(KeyContract); !ok {
		return nil, fmt.Errorf("the file has no %s: it was not written by miplc", KeyContract)
	}
	if m.Contract != ContractBag && m.Contract != ContractBatch {
		return nil, fmt.Errorf("%s is %q, this version of miplc knows %q and %q", KeyContract, m.Contract, ContractBag, ContractBatch)
	}
	for _, plain := range []struct {
		key string
		to  *string
	}{
		{KeyVersion, &m.Version}, {KeyNormalize, &m.Normalization}, {KeyEngine, &m.Engine},
		{KeySpecHash, &m.SpecSHA256}, {KeyDataHash, &m.DataSHA256},
	} {
		if *plain.to, ok = model.Metadata(plain.key); !ok {
			return nil, fmt.Errorf("the file has no %s", plain.key)
		}
	}
	if text, ok := model.Metadata(KeyTolerance); ok { // earlier writers have none
		v, err := strconv.ParseFloat(text, 64)
		if err != nil || !(v >= 0 && v <= 1) {
			return nil, fmt.Errorf("%s is %q, expected a number from 0 to 1", KeyTolerance, text)
		}
		m.Tolerance = v
	}
	m.Precision, _ = model.Metadata(KeyPrecision)
	var seed json.Number
	for _, coded := range []struct {
		key string
		to  any
	}{
		{KeyClasses, &m.Classes}, {KeyInputShape, &m.InputShape}, {KeySplit, &m.Split},
		{KeyParity, &m.Parity}, {KeyBackends, &m.Backends}, {KeySeed, &seed},
	} {
		text, ok := model.Metadata(coded.key)
		if !ok {
			return nil, fmt.Errorf("the file has no %s", coded.key)
		}
		if err := json.Unmarshal([]byte(text), coded.to); err != nil {
			return nil, fmt.Errorf("%s: %w", coded.key, err)
		}
	}
	var err error
	if m.Seed, err = strconv.ParseUint(seed.String(), 10, 64); err != nil {
		return nil, fmt.Errorf("%s: %q is not a seed", KeySeed, seed)
	}
	return m, m.check()
}

// check looks at the values that tensors are sized by.
func (m *Metadata) check() error {
	if n := len(m.Classes); n < 1 || n > maxClasses {
		return fmt.Errorf("%s names %d classes", KeyClasses, n)
	}
	seen := make(map[string]int, len(m.Classes))
	for i, name := range m.Classes {
		if name == "" { // null in the JSON, too
			return fmt.Errorf("%s: class %d has no name", KeyClasses, i)
		}
		if first, twice := seen[name]; twice {
			return fmt.Errorf("%s: classes %d and %d are both called %q", KeyClasses, first, i, name)
		}
		seen[name] = i
	}
	if n := len(m.InputShape); n < 1 || n >= maxRank {
		return fmt.Errorf("%s %v: an instance has 1 to %d axes", KeyInputShape, m.InputShape, maxRank-1)
	}
	size := 1
	for _, d := range m.InputShape {
		if d < 1 || d > maxExtent/size {
			return fmt.Errorf("%s %v is not the shape of an instance", KeyInputShape, m.InputShape)
		}
		size *= d
	}
	if !slices.Contains([]string{"none", "training", "all"}, m.Normalization) {
		return fmt.Errorf("%s is %q, expected none, training or all", KeyNormalize, m.Normalization)
	}
	if len(m.Backends) == 0 {
		return fmt.Errorf("%s names no back end", KeyBackends)
	}
	return nil
}
