package otellock

import (
	"context"
	"strings"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// mark stands in a label before a traceparent.
const mark = "traceparent="

// Label is for [interlock.Options].LabelFrom: it appends the trace of the call to the label of the lock, as a
// traceparent of W3C Trace Context, so that waiters can link to it (see Options.LinkHolders):
//
//	nightly traceparent=00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01
//
// It is the span in the context of the call, which is the parent of "lock wait" and "lock hold". If there is none, or
// it is not sampled, Label returns the label as it is: such a trace is nowhere to be found. It takes 67 bytes and,
// after a label, a space; a label that gets longer than 255 bytes by that does not count, see
// [interlock.Options].LabelFrom.
//
// Whoever may look at the lock sees the ids of the trace and of the span, and nothing else of them: no tracestate and
// no baggage.
func Label(ctx context.Context, label string) string {
	span := trace.SpanContextFromContext(ctx)
	if !span.IsValid() || !span.IsSampled() {
		return label
	}
	traceparent := mark + "00-" + span.TraceID().String() + "-" + span.SpanID().String() + "-01"
	if label == "" {
		return traceparent
	}
	return label + " " + traceparent
}

// spanIn returns the span whose traceparent a label has, and reports whether it has a valid one. Any program may have
// written the label. The last traceparent counts, because Label appends.
func spanIn(label string) (span trace.SpanContext, is bool) {
	at := strings.LastIndex(label, mark)
	if at < 0 || at > 0 && label[at-1] != ' ' {
		return span, false
	}
	traceparent, _, _ := strings.Cut(label[at+len(mark):], " ")
	found := propagation.TraceContext{}.Extract(background, propagation.MapCarrier{"traceparent": traceparent})
	span = trace.SpanContextFromContext(found)
	return span, span.IsValid()
}
