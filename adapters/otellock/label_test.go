package otellock

import (
	"strings"
	"testing"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

const (
	traceID = "4bf92f3577b34da6a3ce929d0e0e4736"
	spanID  = "00f067aa0ba902b7"
	example = "traceparent=00-" + traceID + "-" + spanID + "-01"
)

func TestLabel_AppendsTheSpanOfTheCall(t *testing.T) {
	ctx, span := sdktrace.NewTracerProvider().Tracer("test").Start(t.Context(), "call")
	for label, want := range map[string]string{"": "", "nightly": "nightly ", "a b": "a b "} {
		got := Label(ctx, label)
		if !strings.HasPrefix(got, want+mark) || len(got) != len(want)+67 {
			t.Errorf("%q becomes %q", label, got)
		}
		found, is := spanIn(got)
		if !is || found.TraceID() != span.SpanContext().TraceID() || found.SpanID() != span.SpanContext().SpanID() ||
			!found.IsSampled() {
			t.Errorf("%q has the span %v, %v", got, found, is)
		}
	}
	if got := Label(t.Context(), "nightly"); got != "nightly" {
		t.Errorf("without a span: %q", got)
	}
	never := sdktrace.NewTracerProvider(sdktrace.WithSampler(sdktrace.NeverSample())).Tracer("test")
	ctx, _ = never.Start(t.Context(), "call")
	if got := Label(ctx, "nightly"); got != "nightly" {
		t.Errorf("with a span that is not sampled: %q", got)
	}
}

// Labels are what other programs have written.
func TestSpanIn_TakesOnlyWhatIsATraceparent(t *testing.T) {
	for _, label := range []string{
		example, "nightly " + example, example + " more", mark + "00-1-1-01 " + example, " " + example,
		"traceparent=01-" + traceID + "-" + spanID + "-01-what a later version appends",
	} {
		span, is := spanIn(label)
		if !is || span.TraceID().String() != traceID || span.SpanID().String() != spanID || !span.IsRemote() {
			t.Errorf("%q has the span %v, %v", label, span, is)
		}
	}
	for _, label := range []string{
		"", "nightly", mark, "my" + example, "00-" + traceID + "-" + spanID + "-01",
		mark + "00-" + traceID, example[:len(example)-1], example + "0", example + " " + mark,
		mark + "ff-" + traceID + "-" + spanID + "-01",
		mark + "00-" + strings.Repeat("0", 32) + "-" + spanID + "-01",
		mark + "00-" + traceID + "-" + strings.Repeat("0", 16) + "-01",
		mark + "00-" + strings.Repeat("x", 32) + "-" + spanID + "-01",
		mark + "\xff\x00", mark + strings.Repeat("00-", 80),
	} {
		if span, is := spanIn(label); is || span.IsValid() {
			t.Errorf("%q has the span %v", label, span)
		}
	}
}

func FuzzSpanIn(f *testing.F) {
	f.Add("nightly " + example)
	f.Fuzz(func(t *testing.T, label string) {
		span, is := spanIn(label)
		if is != span.IsValid() || is && !strings.Contains(label, span.TraceID().String()) {
			t.Errorf("%q has the span %v, %v", label, span, is)
		}
	})
}
