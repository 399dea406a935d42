// Inference over HTTP in the Open Inference Protocol, with JSON or raw tensors.

package serve

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"

	"github.com/miplc/miplc/internal/ndarray"
	"github.com/miplc/miplc/runtime/serve/oip"
)

// jsonLength is the header of the protocol's binary tensor extension: the number of bytes of JSON
// in the body. Raw tensors follow in the order of their descriptions.
const jsonLength = "Inference-Header-Content-Length"

// parameters are the parameters of requests, inputs and outputs that the server supports.
type parameters struct {
	BinaryData       *bool           `json:"binary_data,omitempty"`
	BinaryDataOutput bool            `json:"binary_data_output,omitempty"`
	BinaryDataSize   *int            `json:"binary_data_size,omitempty"`
	Classification   json.RawMessage `json:"classification,omitempty"`
	SharedMemory     json.RawMessage `json:"shared_memory_region,omitempty"`
}

// inferAnswer is the JSON of the answer.
type inferAnswer struct {
	Model   string        `json:"model_name"`
	Version string        `json:"model_version"`
	ID      string        `json:"id,omitempty"`
	Outputs []inferOutput `json:"outputs"`
}

type inferOutput struct {
	Name       string      `json:"name"`
	Datatype   string      `json:"datatype"`
	Shape      []int64     `json:"shape"`
	Parameters *parameters `json:"parameters,omitempty"`
	Data       any         `json:"data,omitempty"`
}

func (s *Server) postInfer(w http.ResponseWriter, r *http.Request) error {
	req, err := s.receive(w, r, r.PathValue("model"))
	if err != nil {
		return err
	}
	defer req.memory.release()
	c, binary, err := s.readInfer(req, r.Header.Get(jsonLength))
	if err != nil {
		return err
	}
	c.model, c.version = r.PathValue("model"), r.PathValue("version")
	answer, err := s.infer(c)
	if err != nil {
		return err
	}
	return writeInfer(w, c, answer, binary)
}

// readInfer reads an inference request. length is the number of bytes of JSON; empty: all. binary
// reports whether outputs are raw unless the request says otherwise. It does not decode the
// contents of tensors.
func (s *Server) readInfer(req *request, length string) (c *inferCall, binary bool, err error) {
	done, err := s.admission.decoding(req.ctx, req.size)
	if err != nil {
		return nil, false, err
	}
	defer done()
	head, raw := req.body, []byte(nil)
	if length != "" {
		n, err := strconv.Atoi(length)
		if err != nil || n < 0 || n > len(head) {
			return nil, false, invalid("%s is %.40q, the body has %d bytes", jsonLength, length, len(head))
		}
		head, raw = head[:n], head[n:]
	}
	j := inferJSON{jsonReader: newJSONReader(head), call: &inferCall{request: req}}
	if err := j.read(); err != nil {
		return nil, false, err
	}
	return j.call, j.binary, j.takeRaw(raw)
}

// inferJSON reads the JSON of an inference request.
type inferJSON struct {
	*jsonReader
	call   *inferCall
	binary bool   // from the parameters
	sizes  []*int // binary_data_size of each input
}

func (j *inferJSON) read() error {
	err := j.members(`the body must be an object: {"inputs": [...]}`, func(name string) error {
		switch name {
		case "id":
			return j.decode(name, &j.call.id)
		case "parameters":
			p := parameters{}
			err := j.decode(name, &p)
			j.binary = p.BinaryDataOutput
			return err
		case "inputs":
			return j.tensors(name, j.input)
		case "outputs":
			return j.tensors(name, j.output)
		}
		_, err := j.value()
		return err
	})
	if err != nil {
		return err
	}
	return j.end()
}

// tensors reads a list of inputs or outputs with read, at most maxTensors.
func (j *inferJSON) tensors(name string, read func(path string) error) error {
	return j.elements(name+" must be a list", func(i int) error {
		if i == maxTensors {
			return tooMany(name)
		}
		return read(fmt.Sprintf("%s[%d]", name, i))
	})
}

func (j *inferJSON) input(path string) error {
	in := inputTensor{}
	p := parameters{}
	err := j.members(path+" must be an object", func(name string) error {
		switch name {
		case "name":
			return j.decode(path+".name", &in.name)
		case "datatype":
			return j.decode(path+".datatype", &in.datatype)
		case "shape":
			return j.decode(path+".shape", &in.shape)
		case "parameters":
			return j.decode(path+".parameters", &p)
		case "data":
			text, err := j.value()
			if string(text) != "null" {
				in.json = text
			}
			return err
		}
		_, err := j.value()
		return err
	})
	switch {
	case err != nil:
		return err
	case p.BinaryDataSize != nil && in.json != nil:
		return invalid("input %.100q has both data and binary_data_size: give one", in.name)
	case p.BinaryDataSize == nil && in.json == nil:
		in.json = []byte("[]")
	}
	in.sharedMemory = given(p.SharedMemory)
	j.call.inputs, j.sizes = append(j.call.inputs, in), append(j.sizes, p.BinaryDataSize)
	return nil
}

// given reports whether a parameter is present and not null.
func given(value json.RawMessage) bool { return value != nil && string(value) != "null" }

func (j *inferJSON) output(path string) error {
	out := requestedOutput{}
	p := parameters{}
	err := j.members(path+" must be an object", func(name string) error {
		switch name {
		case "name":
			return j.decode(path+".name", &out.name)
		case "parameters":
			return j.decode(path+".parameters", &p)
		}
		_, err := j.value()
		return err
	})
	out.binary = p.BinaryData
	switch {
	case given(p.Classification):
		out.unsupported = classification
	case given(p.SharedMemory):
		out.unsupported = sharedMemory
	}
	j.call.outputs = append(j.call.outputs, out)
	return err
}

// takeRaw assigns the raw bytes to the inputs.
func (j *inferJSON) takeRaw(raw []byte) error {
	for i, size := range j.sizes {
		if size == nil {
			continue
		}
		in := &j.call.inputs[i]
		if *size < 0 || *size > len(raw) {
			return invalid("input %.100q: binary_data_size is %d, %d bytes are left", in.name, *size, len(raw))
		}
		in.raw, raw = raw[:*size:*size], raw[*size:]
	}
	if len(raw) > 0 {
		return invalid("%d bytes follow the tensors that were described", len(raw))
	}
	return nil
}

// writeInfer writes the answer with each output in the requested form.
func writeInfer(w http.ResponseWriter, c *inferCall, answer *oip.ModelInferResponse, binary bool) error {
	head := inferAnswer{Model: answer.ModelName, Version: answer.ModelVersion, ID: answer.Id}
	var raw [][]byte
	for i, t := range answer.Outputs {
		out := inferOutput{Name: t.Name, Datatype: t.Datatype, Shape: t.Shape}
		contents := answer.RawOutputContents[i]
		switch {
		case c.wantsRaw(t.Name, binary):
			out.Parameters = &parameters{BinaryDataSize: new(len(contents))}
			raw = append(raw, contents)
		case t.Datatype == int64s:
			out.Data = ndarray.FromBytes[int64](contents)
		default:
			out.Data = ndarray.FromBytes[float32](contents)
		}
		head.Outputs = append(head.Outputs, out)
	}
	if raw == nil {
		return writeJSON(w, http.StatusOK, head)
	}
	text, err := json.Marshal(head)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set(jsonLength, strconv.Itoa(len(text)))
	_, _ = w.Write(bytes.Join(append([][]byte{text}, raw...), nil)) // the client may have gone
	return nil
}

// wantsRaw reports whether an output is to be raw. binary is the default of the request.
func (c *inferCall) wantsRaw(output string, binary bool) bool {
	for _, o := range c.outputs {
		if o.name == output && o.binary != nil {
			return *o.binary
		}
	}
	return binary
}
