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

// startSpan starts the span of a call; it returns nil without a tracer.
func (f *openFile) startSpan(ctx context.Context, bags, instances int) (context.Context, trace.Span) {
	if f.options.tracer == nil {
		return ctx, nil
	}
	return f.options.tracer.Start(ctx, "miplc.predict", trace.WithAttributes(
		attribute.Int("miplc.bags", bags), attribute.Int("miplc.instances", instances),
		attribute.String("miplc.backend", f.info.Backend), attribute.String("miplc.spec_sha256", f.info.SpecSHA256)))
}

func endSpan(span trace.Span, err error) {
	if span == nil {
		return
	}
	if err != nil {
		span.RecordError(err)
		span.SetStatus(codes.Error, err.Error())
	}
	span.End()
}

// LogValue returns the attributes that identify a model, for slog.
func (i Info) LogValue() slog.Value {
	return slog.GroupValue(
		slog.String("contract", i.Contract), slog.String("backend", i.Backend), slog.String("miplc", i.Version),
		slog.String("classes", strings.Join(i.Classes, ", ")), slog.Any("input_shape", i.InputShape),
		slog.String("spec_sha256", i.SpecSHA256), slog.String("data_sha256", i.DataSHA256), slog.Uint64("seed", i.Seed))
}
