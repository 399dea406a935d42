package serve

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strconv"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/miplc/miplc/internal/width"
	"github.com/miplc/miplc/serve/oip"
)

// jsonLength is the header of the protocol's binary tensor extension: so many bytes of
// the body are JSON, and raw tensors follow in the order of their descriptions.
const jsonLength = "Inference-Header-Content-Length"

// parameters are those of requests, inputs and outputs that mean something here.
type parameters struct {
	BinaryData       *bool `json:"binary_data,omitempty"`
	BinaryDataOutput bool  `json:"binary_data_output,omitempty"`
	BinaryDataSize   *int  `json:"binary_data_size,omitempty"`
	Classification   any   `json:"classification,omitempty"`
	SharedMemory     any   `json:"shared_memory_region,omitempty"`
}

// inferRequest is the JSON of a request to infer.
type inferRequest struct {
	ID         string     `json:"id"`
	Parameters parameters `json:"parameters"`
	Inputs     []struct {
		Name       string          `json:"name"`
		Datatype   string          `json:"datatype"`
		Shape      []int64         `json:"shape"`
		Parameters parameters      `json:"parameters"`
		Data       json.RawMessage `json:"data"`
	} `json:"inputs"`
	Outputs []struct {
		Name       string     `json:"name"`
		Parameters parameters `json:"parameters"`
	} `json:"outputs"`
}

// inferAnswer is the JSON of its answer.
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
	body, err := s.readBody(r)
	if err != nil {
		return err
	}
	req, asked, err := readInfer(body, r.Header.Get(jsonLength))
	if err != nil {
		return err
	}
	asked.ModelName, asked.ModelVersion = r.PathValue("model"), r.PathValue("version")
	answer, err := s.infer(r.Context(), asked)
	if err != nil {
		return err
	}
	return req.write(w, answer)
}

// readInfer reads the body of a request to infer, of which a length may say how much is
// JSON, also as the message of the protocol.
func readInfer(body []byte, length string) (*inferRequest, *oip.ModelInferRequest, error) {
	head, raw := body, []byte(nil)
	if length != "" {
		n, err := strconv.Atoi(length)
		if err != nil || n < 0 || n > len(body) {
			return nil, nil, status.Errorf(codes.InvalidArgument, "%s is %.40q, the body has %d bytes", jsonLength, length, len(body))
		}
		head, raw = body[:n], body[n:]
	}
	req := &inferRequest{}
	if err := readJSON(head, req); err != nil {
		return nil, nil, err
	}
	message, err := req.message(raw)
	return req, message, err
}

// message is the request as the message of the protocol. Inputs that are JSON have typed
// contents and nil in the place of raw ones.
func (req *inferRequest) message(raw []byte) (*oip.ModelInferRequest, error) {
	m := &oip.ModelInferRequest{Id: req.ID}
	for _, o := range req.Outputs {
		unknown := map[string]*oip.InferParameter{}
		for name, value := range map[string]any{classification: o.Parameters.Classification, sharedMemory: o.Parameters.SharedMemory} {
			if value != nil {
				unknown[name] = &oip.InferParameter{}
			}
		}
		m.Outputs = append(m.Outputs, &oip.ModelInferRequest_InferRequestedOutputTensor{Name: o.Name, Parameters: unknown})
	}
	for _, in := range req.Inputs {
		t := &oip.ModelInferRequest_InferInputTensor{Name: in.Name, Datatype: in.Datatype, Shape: in.Shape}
		var contents []byte
		if size := in.Parameters.BinaryDataSize; size != nil {
			if *size < 0 || *size > len(raw) {
				return nil, status.Errorf(codes.InvalidArgument, "input %.100q: binary_data_size is %d, %d bytes are left", in.Name, *size, len(raw))
			}
			contents, raw = raw[:*size:*size], raw[*size:]
		} else if err := readData(t, in.Data); err != nil {
			return nil, status.Errorf(codes.InvalidArgument, "input %.100q: data%v", in.Name, err)
		}
		m.Inputs = append(m.Inputs, t)
		m.RawInputContents = append(m.RawInputContents, contents)
	}
	if len(raw) > 0 {
		return nil, status.Errorf(codes.InvalidArgument, "%d bytes follow the tensors that were described", len(raw))
	}
	return m, nil
}

// readData reads the contents of an input from JSON. Other datatypes are left to be
// refused with the signature at hand.
func readData(t *oip.ModelInferRequest_InferInputTensor, data []byte) (err error) {
	t.Contents = &oip.InferTensorContents{}
	noLength := func(d int64) bool { return d < 0 || d > math.MaxInt32 }
	switch {
	case t.Datatype != fp32 && t.Datatype != int64s:
	case len(t.Shape) == 0 || slices.ContainsFunc(t.Shape, noLength):
		err = fmt.Errorf(": the shape %v is none of lengths up to %d", t.Shape, math.MaxInt32)
	case t.Datatype == fp32:
		t.Contents.Fp32Contents, _, err = readNumbers(data, t.Shape, math.MaxInt, parseFloat)
	default:
		t.Contents.Int64Contents, _, err = readNumbers(data, t.Shape, math.MaxInt, parseInt)
	}
	return err
}

// write writes the answer with each output as it was asked for.
func (req *inferRequest) write(w http.ResponseWriter, answer *oip.ModelInferResponse) error {
	head := inferAnswer{Model: answer.ModelName, Version: answer.ModelVersion, ID: answer.Id}
	var raw [][]byte
	for i, t := range answer.Outputs {
		out := inferOutput{Name: t.Name, Datatype: t.Datatype, Shape: t.Shape}
		contents := answer.RawOutputContents[i]
		switch {
		case req.wantsRaw(t.Name):
			size := len(contents)
			out.Parameters = &parameters{BinaryDataSize: &size}
			raw = append(raw, contents)
		case t.Datatype == int64s:
			out.Data = width.FromBytes[int64](contents)
		default:
			out.Data = width.FromBytes[float32](contents)
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

func (req *inferRequest) wantsRaw(output string) bool {
	for _, o := range req.Outputs {
		if o.Name == output && o.Parameters.BinaryData != nil {
			return *o.Parameters.BinaryData
		}
	}
	return req.Parameters.BinaryDataOutput
}
