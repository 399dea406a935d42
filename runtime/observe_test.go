// Spans and log lines show what a service did with its model, and with which error a call ended.

package runtime_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/miplc/miplc/runtime"
)

// tracer records spans, one line for each when it ends.
type tracer struct {
	noop.Tracer
	spans []string
}

type span struct {
	noop.Span
	tracer *tracer
	line   string
}

func (t *tracer) Start(ctx context.Context, name string, opts ...trace.SpanStartOption) (context.Context, trace.Span) {
	s := &span{tracer: t, line: fmt.Sprint(ctx.Value(request{}), " ", name)}
	config := trace.NewSpanStartConfig(opts...)
	for _, kv := range config.Attributes() {
		if kv.Key != attribute.Key("miplc.spec_sha256") {
			s.line += fmt.Sprintf(" %s=%s", kv.Key, kv.Value.String())
		}
	}
	return ctx, s
}

func (s *span) SetStatus(code codes.Code, what string) { s.line += " " + code.String() + ": " + what }
func (s *span) RecordError(err error, _ ...trace.EventOption) {
	s.line += " recorded"
}
func (s *span) End(...trace.SpanEndOption) { s.tracer.spans = append(s.tracer.spans, s.line) }

type request struct{}

func TestTracer(t *testing.T) {
	seen := new(tracer)
	m := open(t, "demipl-3x4.onnx", runtime.WithTracer(seen))
	ctx := context.WithValue(context.Background(), request{}, "request")
	bags := []runtime.Bag{randomBag(5, 3, 1), randomBag(2, 3, 1)}
	if _, err := m.Predict(ctx, bags[0]); err != nil {
		t.Error(err)
	}
	if _, err := m.PredictBatch(ctx, bags, nil); err != nil {
		t.Error(err)
	}
	if _, err := m.Predict(ctx, runtime.Bag{}); err == nil {
		t.Error("an empty bag was predicted")
	}
	want := []string{
		"request miplc.predict miplc.bags=1 miplc.instances=5 miplc.backend=onnxruntime",
		"request miplc.predict miplc.bags=2 miplc.instances=7 miplc.backend=onnxruntime",
		"request miplc.predict miplc.bags=1 miplc.instances=0 miplc.backend=onnxruntime recorded Error: the bag has no " +
			"instances",
	}
	if got := strings.Join(seen.spans, "\n"); got != strings.Join(want, "\n") {
		t.Errorf("spans\n%s\nwant\n%s", got, strings.Join(want, "\n"))
	}
}

func TestLogger(t *testing.T) {
	var out bytes.Buffer
	log := slog.New(slog.NewTextHandler(&out, nil))
	m := open(t, "demipl-3x4.onnx", runtime.WithLogger(log))
	if err := m.Reload("testdata/saturated-3x4.onnx"); err != nil {
		t.Error(err)
	}
	if err := m.Reload("testdata/demipl-38x13.onnx"); err == nil {
		t.Error("it was replaced by a model of another shape")
	}
	if err := m.Close(); err != nil {
		t.Error(err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	want := []string{`level=INFO msg="model opened" `, `level=INFO msg="model reloaded" path=testdata/saturated-3x4.onnx `,
		`level=ERROR msg="model not reloaded: the one in use stays" path=testdata/demipl-38x13.onnx error=`,
		`level=INFO msg="model closed" `}
	if len(lines) != len(want) {
		t.Fatalf("logged\n%s", out.String())
	}
	for i, line := range lines {
		if !strings.Contains(line, want[i]) {
			t.Errorf("logged %s\nwant %s", line, want[i])
		}
	}
	if !strings.Contains(lines[0], `model.contract=bag/1 model.backend=onnxruntime`) ||
		!strings.Contains(lines[0], `model.classes="class 0, class 1, class 2, class 3"`) {
		t.Errorf("logged %s", lines[0])
	}
}
