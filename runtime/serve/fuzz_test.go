// Any request is answered with a prediction or an error of the client.

package serve

import (
	"context"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/miplc/miplc/internal/contract"
	"github.com/miplc/miplc/runtime"
	"github.com/miplc/miplc/runtime/serve/oip"
)

// answers checks what is true of every answer: it is an error of the client, or a prediction with
// valid tensors.
func answers(t *testing.T, got *oip.ModelInferResponse, err error) {
	if err != nil {
		if code := status.Code(err); httpStatus[code] < 400 || httpStatus[code] >= 500 {
			t.Fatalf("%v is not an error of the client: %v", code, err)
		}
		return
	}
	if len(got.Outputs) == 0 || len(got.Outputs) != len(got.RawOutputContents) {
		t.Fatalf("%d outputs, %d contents", len(got.Outputs), len(got.RawOutputContents))
	}
	for i, o := range got.Outputs {
		count := 4
		if o.Datatype == int64s {
			count = 8
		}
		for _, d := range o.Shape {
			count *= int(d)
		}
		if count != len(got.RawOutputContents[i]) {
			t.Fatalf("output %s of shape %v has %d bytes", o.Name, o.Shape, len(got.RawOutputContents[i]))
		}
	}
}

// request returns a request with a body, as receive makes it.
func (s *service) request(body []byte) *request {
	memory, err := s.reserve(context.Background(), int64(len(body)), 0)
	if err != nil {
		panic(err)
	}
	return &request{context.Background(), body, int64(len(body)), memory}
}

func FuzzInferMessage(f *testing.F) {
	s := start(f)
	for _, raw := range []bool{true, false} {
		text, err := proto.Marshal(message(randomBag(2, 1), raw))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		req := s.request(text)
		defer req.memory.release()
		c, err := s.readMessage(req)
		var got *oip.ModelInferResponse
		if err == nil {
			got, err = s.infer(c)
		}
		answers(t, got, err)
	})
}

func FuzzInferBody(f *testing.F) {
	s := start(f)
	f.Add([]byte(`{"inputs": [{"name": "instances", "datatype": "FP32", "shape": [2, 3], "data": [[1, 2, 3], [4, 5, `+
		`6]]}]}`), "")
	f.Add([]byte(`{"inputs": [{"name": "instances", "datatype": "FP32", "shape": [1, 3], "parameters": `+
		`{"binary_data_size": 12}}]}000000000000`), "113")
	f.Add([]byte(`{"inputs": [{"name": "instances", "datatype": "FP32", "shape": [1, 3], "data": [1,2,3]},{"name": `+
		`"bag_of", "datatype": "INT64", "shape": [1], "data": [0]}], "outputs": [{"name": "label"}]}`), "")
	f.Fuzz(func(t *testing.T, body []byte, length string) {
		for _, model := range []string{"bag", "batch"} {
			req := s.request(body)
			defer req.memory.release()
			c, _, err := s.readInfer(req, length)
			var got *oip.ModelInferResponse
			if err == nil {
				c.model = model
				got, err = s.infer(c)
			}
			answers(t, got, err)
		}
	})
}

func FuzzBag(f *testing.F) {
	s := start(f)
	f.Add(`{"instances": [[1, 2, 3], [4, 5, 6]]}`)
	f.Add(`{"instances": [[[1, 2], [3, 4]], [1, 2, 3, 4]]}`)
	f.Add(`{"instances": ` + strings.Repeat("[", 100) + `}`)
	f.Fuzz(func(t *testing.T, body string) {
		for _, shape := range [][]int{{3}, {2, 2}} {
			req := s.request([]byte(body))
			bag, err := s.readBag(req, &runtime.Info{Metadata: contract.Metadata{InputShape: shape}})
			req.memory.release()
			if err != nil {
				if status.Code(err) != codes.InvalidArgument {
					t.Fatal(err)
				}
				continue
			}
			d := 3
			if len(shape) == 2 {
				d = 4
			}
			if len(bag.Instances) != d*bag.N {
				t.Fatalf("%d values for %d instances of shape %v", len(bag.Instances), bag.N, shape)
			}
		}
	})
}
