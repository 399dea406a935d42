// Examples of the documentation: how a Go program opens a model, predicts, and replaces it while in use.

package runtime_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/miplc/miplc/runtime"
	"github.com/miplc/miplc/runtime/onnxgo"
)

// This example opens a model once, then predicts bags of any size.
func ExampleOpen() {
	m, err := runtime.Open("testdata/demipl-3x4.onnx")
	if err != nil {
		log.Fatal(err)
	}
	defer m.Close()

	bag, err := runtime.NewBag([][]float32{
		{0.2, -1.0, 0.7},
		{1.5, 0.3, -0.4},
	})
	if err != nil {
		log.Fatal(err)
	}
	p, err := m.Predict(context.Background(), bag)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s (%.3f), attention %.3f\n", p.Class, p.Probabilities[p.Label], p.Attention)
	// Output: class 0 (0.965), attention [0.533 0.563]
}

// This example runs the model in pure Go, without a shared library.
func ExampleWithBackend() {
	m, err := runtime.Open("testdata/demipl-3x4.onnx", runtime.WithBackend(onnxgo.Backend()))
	if err != nil {
		log.Fatal(err)
	}
	defer m.Close()

	info := m.Info()
	fmt.Println(info.Backend, info.Contract, info.Classes)
	// Output: onnx-go bag/1 [class 0 class 1 class 2 class 3]
}

// This example predicts many bags in one call with a deadline and reuses the predictions.
func ExampleModel_PredictBatch() {
	m, err := runtime.Open("testdata/batch-3x4.onnx")
	if err != nil {
		log.Fatal(err)
	}
	defer m.Close()

	bags := []runtime.Bag{
		{Instances: []float32{0.2, -1.0, 0.7, 1.5, 0.3, -0.4}, N: 2},
		{Instances: []float32{-1.5, 2.0, 0.1}, N: 1},
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	predictions := make([]runtime.Prediction, len(bags))
	for range 3 { // nothing is allocated after the first round
		if _, err := m.PredictBatch(ctx, bags, predictions); err != nil {
			log.Fatal(err)
		}
	}
	for _, p := range predictions {
		fmt.Printf("%s (%.3f)\n", p.Class, p.Probabilities[p.Label])
	}
	// Output:
	// class 0 (0.965)
	// class 3 (0.932)
}

// This example replaces a model that is in use by a newly trained file. A model that callers
// could not use is rejected.
func ExampleModel_Reload() {
	m, err := runtime.Open("testdata/demipl-3x4.onnx")
	if err != nil {
		log.Fatal(err)
	}
	defer m.Close()

	fmt.Println(m.Reload("testdata/saturated-3x4.onnx"))
	fmt.Println(m.Reload("testdata/demipl-38x13.onnx"))
	// Output:
	// <nil>
	// testdata/demipl-38x13.onnx: not a model that miplc can run: it takes instances of shape [38], the model in use of [3]
}

// This example shares one model among all requests of a service.
func ExampleModel_Predict_service() {
	m, err := runtime.Open("testdata/demipl-3x4.onnx")
	if err != nil {
		log.Fatal(err)
	}
	defer m.Close()

	handler := func(w http.ResponseWriter, r *http.Request) {
		var instances [][]float32
		if err := json.NewDecoder(r.Body).Decode(&instances); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		bag, err := runtime.NewBag(instances)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		p, err := m.Predict(r.Context(), bag)
		if err != nil {
			http.Error(w, err.Error(), http.StatusUnprocessableEntity)
			return
		}
		json.NewEncoder(w).Encode(map[string]any{"label": p.Label, "class": p.Class})
	}

	for _, body := range []string{`[[0.2, -1.0, 0.7], [1.5, 0.3, -0.4]]`, `[[0.2, -1.0]]`, `[]`} {
		w := httptest.NewRecorder()
		handler(w, httptest.NewRequest(http.MethodPost, "/predict", strings.NewReader(body)))
		fmt.Print(w.Code, " ", w.Body)
	}
	// Output:
	// 200 {"class":"class 0","label":0}
	// 422 the bag does not have the shape that the model needs: its instances have 2 values, the model needs 3 (shape [3])
	// 400 the bag has no instances
}
