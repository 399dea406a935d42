// Command service predicts bags with a model file, its argument. It listens on port PORT (default
// 8080). POST /predict takes a bag as a JSON list of instances; GET on the path HEALTH (default
// /healthz) answers health checks. SIGHUP reloads the file. SIGTERM ends the service after the
// requests in flight.
package main

import (
	"cmp"
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
	flag.Parse()
	model, err := runtime.Open(flag.Arg(0), runtime.WithLogger(slog.Default()))
	if err != nil {
		log.Fatal(err)
	}
	defer model.Close()
	http.HandleFunc("POST /predict", func(w http.ResponseWriter, r *http.Request) { predict(model, w, r) })
	http.HandleFunc("GET "+cmp.Or(os.Getenv("HEALTH"), "/healthz"), func(http.ResponseWriter, *http.Request) {})
	server := &http.Server{Addr: ":" + cmp.Or(os.Getenv("PORT"), "8080")}
	signals, ended := make(chan os.Signal, 1), make(chan error)
	signal.Notify(signals, syscall.SIGHUP, syscall.SIGTERM, os.Interrupt)
	go func() {
		for <-signals == syscall.SIGHUP {
			model.Reload(flag.Arg(0)) // logs errors, and keeps the loaded model then
		}
		ended <- server.Shutdown(context.Background())
	}()
	if err := server.ListenAndServe(); err != http.ErrServerClosed {
		log.Fatal(err)
	}
	<-ended
}

func predict(model *runtime.Model, w http.ResponseWriter, r *http.Request) {
	instances, bag, p := [][]float32{}, runtime.Bag{}, runtime.Prediction{}
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
