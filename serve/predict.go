package serve

import (
	"net/http"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/miplc/miplc/internal/ndarray"
	"github.com/miplc/miplc/runtime"
)

// bagAnswer is the JSON of the prediction of one bag.
type bagAnswer struct {
	Model   string `json:"model"`
	Version string `json:"version"`
	runtime.Prediction
}

// postPredict predicts one bag in plain JSON.
func (s *Server) postPredict(w http.ResponseWriter, r *http.Request) error {
	v, done, err := s.models.use(r.URL.Query().Get("model"), r.URL.Query().Get("version"))
	if err != nil {
		return err
	}
	defer done()
	req, err := s.receive(w, r)
	if err != nil {
		return err
	}
	defer req.memory.release()
	bag, err := s.readBag(req, v.info.InputShape)
	if err != nil {
		return err
	}
	predictions, err := v.predict(req.ctx, []runtime.Bag{bag})
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, bagAnswer{v.name, v.number(), predictions[0]})
}

// readBag reads a bag of instances of the given shape. Afterwards only the memory of its values
// stays reserved.
func (s *Server) readBag(req *request, instance []int) (runtime.Bag, error) {
	done, err := s.admission.decoding(req.ctx, int64(len(req.body)))
	if err != nil {
		return runtime.Bag{}, err
	}
	defer done()
	list, err := findInstances(req.body)
	if err != nil {
		return runtime.Bag{}, err
	}
	d := ndarray.Size(instance)
	values, n := min(countNumbers(list), s.o.Instances*d), s.o.Instances
	if err := req.decoded(values, min(n, values), true); err != nil {
		return runtime.Bag{}, err
	}
	bag := runtime.Bag{}
	shape := append([]int64{-1}, ndarray.Convert[int64](instance)...)
	bag.Instances, bag.N, err = readNumbers(req.ctx, list, shape, n, make([]float32, 0, values), parseFloat)
	if err != nil {
		return runtime.Bag{}, decodeError(err, "instances%v (shape of an instance: %v)", err, instance)
	}
	return bag, req.decoded(cap(bag.Instances), bag.N, false)
}

// findInstances finds the instances in the JSON of a bag.
func findInstances(body []byte) (list []byte, err error) {
	c, err := newCursor(body)
	if err != nil {
		return nil, err
	}
	object, err := c.members(func(name string) error {
		if value := c.skip(); name == "instances" && string(value) != "null" {
			list = value
		}
		return nil
	})
	if err == nil && (!object || list == nil) {
		err = status.Error(codes.InvalidArgument, `"instances" is missing: a bag is {"instances": [[...], [...]]}, a list of numbers for each instance`)
	}
	return list, err
}
