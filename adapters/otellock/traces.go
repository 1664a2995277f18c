package otellock

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/interlock-go/interlock"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
)

// What spans and metrics are described by.
const (
	kindKey    = attribute.Key("interlock.kind")
	classKey   = attribute.Key("interlock.class")
	engineKey  = attribute.Key("interlock.engine")
	nameKey    = attribute.Key("interlock.name")
	tokenKey   = attribute.Key("interlock.token")
	resultKey  = attribute.Key("interlock.result")
	reasonKey  = attribute.Key("interlock.reason")
	queuedKey  = attribute.Key("interlock.queued")
	localKey   = attribute.Key("interlock.local")
	upgradeKey = attribute.Key("interlock.upgrade")
	leftKey    = attribute.Key("interlock.remaining_seconds")
)

// traces makes the spans.
type traces struct {
	tracer    trace.Tracer
	omitNames bool
	links     *links // nil without links

	holds sync.Map // interlock.HoldID to the trace.Span of the hold; only those that are recorded
}

func (t *traces) observer() *interlock.Observer {
	o := &interlock.Observer{
		Acquired: func(ctx context.Context, e interlock.Event) {
			if !e.Cond {
				t.waited(ctx, e)
			}
			t.held(ctx, e)
		},
		Upgraded: func(ctx context.Context, e interlock.Event) {
			t.waited(ctx, e, upgradeKey.Bool(true))
			t.event(e, "upgraded", tokenKey.Int64(int64(e.Token)))
		},
		Failed: func(ctx context.Context, e interlock.Event) {
			t.waited(ctx, e, upgradeKey.Bool(e.Hold != interlock.HoldID{}))
		},
		Renewed: func(e interlock.Event) {
			if e.Late {
				t.event(e, "renewal late", leftKey.Float64(e.Margin.Seconds()))
			}
		},
		RenewalFailed: func(e interlock.Event) {
			t.event(e, "renewal failed", leftKey.Float64(e.Remained.Seconds()),
				attribute.String("error.message", t.text(e)))
		},
		Recalled: func(e interlock.Event) { t.event(e, "recalled") },
		Lost:     t.lost,
		Released: t.released,
	}
	if t.links != nil {
		o.Waiting = t.links.waiting
	}
	return o
}

// waited makes the span of a call, at its end: only then is it known how it went, and all the time it has no child.
func (t *traces) waited(ctx context.Context, e interlock.Event, more ...attribute.KeyValue) {
	end := time.Now()
	_, span := t.tracer.Start(ctx, "lock wait", trace.WithTimestamp(end.Add(-e.Waited)),
		trace.WithAttributes(t.describe(e)...), trace.WithAttributes(more...), trace.WithLinks(t.links.of(e)...))
	defer span.End(trace.WithTimestamp(end))
	if !span.IsRecording() {
		return
	}
	span.SetAttributes(resultKey.String(string(e.Result())), queuedKey.Bool(e.Queued), localKey.Bool(e.Local))
	if e.Err != nil && e.Result() != interlock.ResultHeld {
		t.fail(span, e)
	}
}

// held begins the span of a hold.
func (t *traces) held(ctx context.Context, e interlock.Event) {
	_, span := t.tracer.Start(ctx, "lock hold", trace.WithAttributes(t.describe(e)...))
	if span.IsRecording() { // what is not sampled costs no memory
		t.holds.Store(e.Hold, span)
		return
	}
	span.End()
}

// take returns the span of the hold of e, which has ended, or nil.
func (t *traces) take(e interlock.Event) trace.Span {
	span, _ := t.holds.LoadAndDelete(e.Hold)
	s, _ := span.(trace.Span)
	return s
}

// event adds an event to the span of the hold of e.
func (t *traces) event(e interlock.Event, name string, attributes ...attribute.KeyValue) {
	if span, is := t.holds.Load(e.Hold); is {
		span.(trace.Span).AddEvent(name, trace.WithAttributes(attributes...))
	}
}

func (t *traces) lost(e interlock.Event) {
	span := t.take(e)
	if span == nil {
		return
	}
	span.SetAttributes(reasonKey.String(valid(string(e.Reason))))
	t.fail(span, e)
	span.End()
}

func (t *traces) released(e interlock.Event) {
	span := t.take(e)
	if span == nil {
		return
	}
	switch {
	case errors.Is(e.Err, interlock.ErrLost): // the engine has ended it before, as it says now
		t.fail(span, e)
	case e.Err != nil:
		span.AddEvent("release not confirmed", trace.WithAttributes(attribute.String("error.message", t.text(e))))
	}
	span.End()
}

// fail says that span has failed with the error of e.
func (t *traces) fail(span trace.Span, e interlock.Event) {
	text := t.text(e)
	if text == e.Err.Error() {
		span.RecordError(e.Err)
	} else {
		span.RecordError(errors.New(text)) //nolint:err113 // only its text counts
	}
	span.SetStatus(codes.Error, text)
}

// text is what went wrong, without names if they must be omitted.
func (t *traces) text(e interlock.Event) string {
	if !t.omitNames {
		return valid(e.Err.Error())
	}
	var lost *interlock.LostError
	if errors.As(e.Err, &lost) {
		return valid("lost: " + string(lost.Reason))
	}
	return string(e.Result())
}

// describe returns what all spans say of a lock.
func (t *traces) describe(e interlock.Event) []attribute.KeyValue {
	attributes := describe(e)
	if !t.omitNames {
		attributes = append(attributes, nameKey.String(valid(e.Name)))
	}
	if e.Token != 0 {
		attributes = append(attributes, tokenKey.Int64(int64(e.Token))) // below 2^63
	}
	return attributes
}

// describe returns what all spans and metrics say of a lock.
func describe(e interlock.Event) []attribute.KeyValue {
	return []attribute.KeyValue{
		classKey.String(valid(e.Class)), kindKey.String(valid(string(e.Kind))), engineKey.String(valid(e.Engine)),
	}
}

// valid is s as exporters take it: one string that is not UTF-8 has them refuse all that is sent with it.
func valid(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }
