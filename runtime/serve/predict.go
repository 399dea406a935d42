// Predictions in plain JSON, for clients that do not speak the Open Inference Protocol.

package serve

import (
	"net/http"
	"net/url"

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
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil { // it would lack the faulty keys, and another version could answer
		return invalid("query of the URL: %v", err)
	}
	v, done, err := s.models.use(query.Get("model"), query.Get("version"))
	if err != nil {
		return err
	}
	defer done()
	req, err := s.receive(w, r, v.name)
	if err != nil {
		return err
	}
	defer req.memory.release()
	bag, err := s.readBag(req, &v.info)
	if err != nil {
		return err
	}
	predictions, err := v.predict(req, []runtime.Bag{bag})
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, bagAnswer{v.name, v.versionText(), predictions[0]})
}

// readBag reads a bag for a model: instances, or image files for a model with an encoder. Afterwards
// only the memory of its values stays reserved.
func (s *Server) readBag(req *request, info *runtime.Info) (bag runtime.Bag, err error) {
	done, err := s.admission.decoding(req.ctx, req.size)
	if err != nil {
		return bag, err
	}
	defer done()
	list, images, err := findInstances(req.body)
	if err != nil {
		return bag, err
	}
	if images != nil {
		bag, err = s.readImages(req, images, info)
	} else {
		bag, err = s.readInstances(req, list, info)
	}
	if err != nil {
		return bag, err
	}
	return bag, req.releaseBody(cap(bag.Instances), bag.N*scores(info))
}

// readInstances reads instances of the shape that the model expects.
func (s *Server) readInstances(req *request, list []byte, info *runtime.Info) (bag runtime.Bag, err error) {
	instance := info.InputShape
	d := ndarray.Size(instance)
	values, n := min(countNumbers(list), s.o.MaxInstances*d), s.o.MaxInstances
	if err := req.reserveDecoded(values, values/d*scores(info)); err != nil {
		return bag, err
	}
	shape := append([]int64{-1}, ndarray.Convert[int64](instance)...)
	bag.Instances, bag.N, err = readNumbers(req.ctx, list, shape, n, make([]float32, 0, values), parseFloat)
	return bag, decodeError(err, "instances%v (shape of an instance: %v)", err, instance)
}

// findInstances finds the instances or the images in the JSON of a bag.
func findInstances(body []byte) (list, images []byte, err error) {
	const missing = `"instances" is missing: a bag is {"instances": [[...], [...]]}, a list of numbers for each instance`
	r := newJSONReader(body)
	err = r.members(missing, func(name string) error {
		value, err := r.value()
		switch {
		case err != nil, string(value) == "null":
		case name == "instances":
			list = value
		case name == "images":
			images = value
		}
		return err
	})
	if err == nil {
		err = r.end()
	}
	switch {
	case err != nil:
		return nil, nil, err
	case list != nil && images != nil:
		return nil, nil, invalid(`a bag has "instances" or "images", not both`)
	case list == nil && images == nil:
		return nil, nil, invalid(missing)
	}
	return list, images, nil
}
