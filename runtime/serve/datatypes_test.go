// The test of this file sends bags in each floating-point datatype of the Open Inference Protocol.

package serve

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/x448/float16"

	"github.com/miplc/miplc/internal/ndarray"
	"github.com/miplc/miplc/runtime"
	"github.com/miplc/miplc/runtime/serve/oip"
)

// FP16, BF16 and FP64 tensors give the prediction of the same numbers in FP32, over both protocols.
func TestDatatypes(t *testing.T) {
	s := start(t)
	bag := runtime.Bag{Instances: []float32{-1, 0.5, 2, 0, -0.25, 1.5}, N: 2} // exact in all datatypes
	want, err := s.direct["bag"].Predict(t.Context(), bag)
	if err != nil {
		t.Fatal(err)
	}
	client := oip.NewGRPCInferenceServiceClient(s.dial(t))
	for datatype, add := range map[string]func([]byte, float32) []byte{
		"FP32": func(b []byte, v float32) []byte { return binary.LittleEndian.AppendUint32(b, math.Float32bits(v)) },
		"FP16": func(b []byte, v float32) []byte {
			return binary.LittleEndian.AppendUint16(b, float16.Fromfloat32(v).Bits())
		},
		"BF16": func(b []byte, v float32) []byte {
			return binary.LittleEndian.AppendUint16(b, uint16(math.Float32bits(v)>>16))
		},
		"FP64": func(b []byte, v float32) []byte {
			return binary.LittleEndian.AppendUint64(b, math.Float64bits(float64(v)))
		},
	} {
		var raw []byte
		for _, v := range bag.Instances {
			raw = add(raw, v)
		}
		text := fmt.Sprintf(`{"inputs": [{"name": "instances", "datatype": %q, "shape": [2, 3], `, datatype)
		head := text + fmt.Sprintf(`"parameters": {"binary_data_size": %d}}]}`, len(raw))
		for form, got := range map[string][]float32{
			"JSON":   s.probabilities(t, text+`"data": `+asJSON(bag.Instances)+"}]}", 0),
			"binary": s.probabilities(t, head+string(raw), len(head)),
		} {
			if !slices.Equal(got, want.Probabilities) {
				t.Errorf("%s in %s: %v, want %v", datatype, form, got, want.Probabilities)
			}
		}
		m := message(bag, true)
		m.Inputs[0].Datatype, m.RawInputContents[0] = datatype, raw
		messages := []*oip.ModelInferRequest{m}
		if datatype == "FP64" {
			typed := message(bag, false)
			typed.Inputs[0].Datatype = datatype
			typed.Inputs[0].Contents = &oip.InferTensorContents{Fp64Contents: ndarray.Convert[float64](bag.Instances)}
			messages = append(messages, typed)
		}
		for i, m := range messages {
			got, err := client.ModelInfer(t.Context(), m)
			if err != nil {
				t.Errorf("%s, message %d: %v", datatype, i, err)
			} else if p := ndarray.FromBytes[float32](got.RawOutputContents[0]); !slices.Equal(p, want.Probabilities) {
				t.Errorf("%s, message %d: %v, want %v", datatype, i, p, want.Probabilities)
			}
		}
	}
}

// probabilities returns the first output of the model bag for a body; head is the size of its JSON if raw
// tensors follow.
func (s *service) probabilities(t *testing.T, body string, head int) []float32 {
	t.Helper()
	req, err := http.NewRequest("POST", s.url+"/v2/models/bag/infer", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if head > 0 {
		req.Header.Set(jsonLength, fmt.Sprint(head))
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != 200 {
		t.Fatalf("status %d, %v: %s", resp.StatusCode, err, text)
	}
	return decode[struct{ Outputs []struct{ Data []float32 } }](t, string(text)).Outputs[0].Data
}

// A body may begin with a byte order mark.
func TestByteOrderMark(t *testing.T) {
	s := start(t, func(*Config) {})
	for path, body := range map[string]string{
		"/predict?model=bag":   `{"instances": [[1, 2, 3]]}`,
		"/v2/models/bag/infer": `{"inputs": [{"name": "instances", "datatype": "FP32", "shape": [1, 3], "data": [1, 2, 3]}]}`,
	} {
		if code, text := s.ask(t, "POST", path, "\xef\xbb\xbf"+body); code != 200 {
			t.Errorf("%s: %d %s", path, code, text)
		}
	}
}
