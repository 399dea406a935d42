// Command service answers a bag, a JSON list of instances, with its prediction. SIGHUP
// reads the model file again, SIGTERM ends the service after the requests under way.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"log"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"syscall"

	"github.com/miplc/miplc/runtime"
)

func main() {
	path, address := flag.String("model", "model.onnx", "model file"), flag.String("listen", "localhost:8080", "address")
	flag.Parse()
	model, err := runtime.Open(*path, runtime.WithLogger(slog.Default()))
	if err != nil {
		log.Fatal(err)
	}
	defer model.Close()
	server := &http.Server{Addr: *address, Handler: handler(model)}
	signals, ended := make(chan os.Signal, 1), make(chan error)
	signal.Notify(signals, syscall.SIGHUP, syscall.SIGTERM, os.Interrupt)
	go func() {
		for <-signals == syscall.SIGHUP {
			model.Reload(*path) // the model logs how it went, and stays if it went wrong
		}
		ended <- server.Shutdown(context.Background())
	}()
	if err := server.ListenAndServe(); err != http.ErrServerClosed {
		log.Fatal(err)
	}
	<-ended
}

func handler(model *runtime.Model) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var instances [][]float32
		bag, p := runtime.Bag{}, runtime.Prediction{}
		err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 16<<20)).Decode(&instances)
		if err == nil {
			bag, err = runtime.NewBag(instances)
		}
		if err == nil {
			p, err = model.Predict(r.Context(), bag)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		json.NewEncoder(w).Encode(p)
	}
}
