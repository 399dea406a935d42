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
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	make := promauto.With(registry)
	seconds := prometheus.ExponentialBuckets(1e-4, 2.5, 14) // to 15 s
	m := &metrics{
		registry: registry,
		requests: make.NewCounterVec(prometheus.CounterOpts{Name: "miplc_requests_total", Help: "Answered requests, by gRPC status code."},
			[]string{"protocol", "method", "code"}),
		seconds: make.NewHistogramVec(prometheus.HistogramOpts{Name: "miplc_request_seconds", Help: "Time from the head of a request to its answer.", Buckets: seconds},
			[]string{"protocol", "method"}),
		underway: make.NewGauge(prometheus.GaugeOpts{Name: "miplc_requests_underway", Help: "Requests that are being answered."}),
		runBags: make.NewHistogramVec(prometheus.HistogramOpts{Name: "miplc_run_bags", Help: "Bags of one run of the model.", Buckets: prometheus.ExponentialBuckets(1, 2, 10)},
			[]string{"model"}),
		waited: make.NewHistogramVec(prometheus.HistogramOpts{Name: "miplc_wait_seconds", Help: "Time that bags wait for their run.", Buckets: seconds},
			[]string{"model"}),
		instances: make.NewHistogramVec(prometheus.HistogramOpts{Name: "miplc_bag_instances", Help: "Instances of a bag.", Buckets: prometheus.ExponentialBuckets(1, 4, 10)},
			[]string{"model"}),
		models:  make.NewGaugeVec(prometheus.GaugeOpts{Name: "miplc_model_loaded", Help: "1 for each version of a model that is loaded."}, []string{"model", "version"}),
		reloads: make.NewCounterVec(prometheus.CounterOpts{Name: "miplc_reloads_total", Help: "Checks for new models that changed a model or failed, by result."}, []string{"result"}),
	}
	for _, result := range []string{"changed", "failed"} {
		m.reloads.WithLabelValues(result) // with 0, so that an alert can compare the first failure with it
	}
	return m
}
