// Traces and logs of predictions, for services that are observed with OpenTelemetry and slog.

package runtime

import (
	"context"
	"log/slog"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
)

// WithTracer creates an OpenTelemetry span "miplc.predict" for every call that predicts, as a child
// of the span in the context. Its attributes are the numbers of bags and instances, the back end, the
// hash of the spec, and the error if there is one.
func WithTracer(t trace.Tracer) Option { return func(o *options) { o.tracer = t } }

// WithLogger sets a logger for opening, reloading, failed reloads and closing; the default does not
// log. Predictions are not logged.
func WithLogger(l *slog.Logger) Option {
	if l == nil {
		l = slog.New(slog.DiscardHandler)
	}
	return func(o *options) { o.log = l }
}

// call predicts bags with the file in use, in a span if there is a tracer.
func (m *Model) call(ctx context.Context, bags, instances int, predict func(context.Context, *openFile) error) error {
	f, err := m.acquire()
	if err != nil {
		return err
	}
	defer f.using.RUnlock()
	if f.options.tracer == nil {
		return predict(ctx, f)
	}
	ctx, span := f.options.tracer.Start(ctx, "miplc.predict", trace.WithAttributes(
		attribute.Int("miplc.bags", bags), attribute.Int("miplc.instances", instances),
		attribute.String("miplc.backend", f.info.Backend), attribute.String("miplc.spec_sha256", f.info.SpecSHA256)))
	defer span.End()
	if err = predict(ctx, f); err != nil {
		span.RecordError(err)
		span.SetStatus(codes.Error, err.Error())
	}
	return err
}

// LogValue returns the attributes that identify a model, for slog.
func (i Info) LogValue() slog.Value {
	return slog.GroupValue(
		slog.String("contract", i.Contract), slog.String("backend", i.Backend), slog.String("miplc", i.Version),
		slog.String("classes", strings.Join(i.Classes, ", ")), slog.Any("input_shape", i.InputShape),
		slog.String("spec_sha256", i.SpecSHA256), slog.String("data_sha256", i.DataSHA256), slog.Uint64("seed", i.Seed))
}
