package serve

import (
	"encoding/json"
	"net/http"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/miplc/miplc/internal/width"
	"github.com/miplc/miplc/runtime"
)

// bagRequest is the JSON of a bag: its instances, each as the model's input shape has
// it or flat.
type bagRequest struct {
	Instances json.RawMessage `json:"instances"`
}

// bagAnswer is the JSON of its prediction.
type bagAnswer struct {
	Model   string `json:"model"`
	Version string `json:"version"`
	runtime.Prediction
}

// postPredict answers for one bag in plain JSON.
func (s *Server) postPredict(w http.ResponseWriter, r *http.Request) error {
	v, done, err := s.models.use(r.URL.Query().Get("model"), r.URL.Query().Get("version"))
	if err != nil {
		return err
	}
	defer done()
	body, err := s.readBody(r)
	if err != nil {
		return err
	}
	bag, err := s.readBag(body, v.info.InputShape)
	if err != nil {
		return err
	}
	predictions, err := v.predict(r.Context(), []runtime.Bag{bag})
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, bagAnswer{v.name, v.number(), predictions[0]})
}

// readBag reads a bag of instances of a shape.
func (s *Server) readBag(body []byte, instance []int) (runtime.Bag, error) {
	var req bagRequest
	if err := readJSON(body, &req); err != nil {
		return runtime.Bag{}, err
	}
	if req.Instances == nil {
		return runtime.Bag{}, status.Error(codes.InvalidArgument, `"instances" is missing: a bag is {"instances": [[...], [...]]}, a list of numbers for each instance`)
	}
	shape := append([]int64{-1}, width.To[int64](instance)...)
	values, n, err := readNumbers(req.Instances, shape, s.o.Instances, parseFloat)
	if err != nil {
		return runtime.Bag{}, status.Errorf(codes.InvalidArgument, "instances%v (shape of an instance: %v)", err, instance)
	}
	return runtime.Bag{Instances: values, N: n}, nil
}
