// The metrics of the server, as Prometheus reads them.

package serve

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// metrics are the metrics at /metrics.
type metrics struct {
	registry  *prometheus.Registry
	requests  *prometheus.CounterVec   // by protocol, method and code
	seconds   *prometheus.HistogramVec // by protocol and method
	underway  prometheus.Gauge
	runBags   *prometheus.HistogramVec // by model
	waited    *prometheus.HistogramVec // by model
	instances *prometheus.HistogramVec // by model
	models    *prometheus.GaugeVec     // by model and version
	reloads   *prometheus.CounterVec   // by result
}

func newMetrics() *metrics {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	make := promauto.With(registry)
	histogram := func(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
		return make.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, labels)
	}
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return make.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	gauge := func(name, help string) prometheus.GaugeOpts { return prometheus.GaugeOpts{Name: name, Help: help} }
	powers := prometheus.ExponentialBuckets
	seconds := powers(1e-4, 2.5, 14) // to 15 s
	m := &metrics{
		registry: registry,
		requests: counter("miplc_requests_total", "Answered requests, by gRPC status code.",
			"protocol", "method", "code"),
		seconds: histogram("miplc_request_seconds", "Time from the head of a request to its answer.", seconds,
			"protocol", "method"),
		underway:  make.NewGauge(gauge("miplc_requests_underway", "Requests that are being answered.")),
		runBags:   histogram("miplc_run_bags", "Bags of one run of the model.", powers(1, 2, 10), "model"),
		waited:    histogram("miplc_wait_seconds", "Time that bags wait for their run.", seconds, "model"),
		instances: histogram("miplc_bag_instances", "Instances of a bag.", powers(1, 4, 10), "model"),
		models: make.NewGaugeVec(gauge("miplc_model_loaded", "1 for each version of a model that is loaded."),
			[]string{"model", "version"}),
		reloads: counter("miplc_reloads_total", "Checks for new models that changed a model or failed, by result.",
			"result"),
	}
	for _, result := range []string{"changed", "failed"} {
		m.reloads.WithLabelValues(result) // with 0, so that an alert can compare the first failure with it
	}
	return m
}
