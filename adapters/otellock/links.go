package otellock

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/interlock-go/interlock"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"
)

const (
	// mostLooks bounds the looks that are under way at once: beside a crowd that waits they must not be what loads the
	// engine.
	mostLooks = 4

	// lookTime bounds one look. An engine that is slower has other troubles than a missing link.
	lookTime = time.Second

	// mostLinks bounds the links of one span: a lock may have very many readers.
	mostLinks = 8
)

// links finds the traces of those for whom calls wait. nil finds none and costs nothing.
type links struct {
	room  chan struct{} // has one element for each look under way
	asked sync.Map      // interlock.CallID to the *look of that call
	looks metric.Int64Counter
	with  func(interlock.Event, ...attribute.KeyValue) metric.MeasurementOption // that of the metrics
}

func newLinks(m *metrics) *links {
	return &links{
		room: make(chan struct{}, mostLooks),
		with: m.with,
		looks: m.counter("interlock.links", "{look}",
			"Looks at locks for the traces of their holders: linked, none, late, dropped or failed."),
	}
}

// look is one look, for one call.
type look struct {
	cancel context.CancelFunc
	found  atomic.Pointer[[]trace.Link] // what it has brought, or over
}

// over is what a look finds in its place when the call has ended before.
var over = new([]trace.Link)

// waiting looks at the lock for which a call begins to wait, in a goroutine of its own. If too many looks are under
// way, or the call belongs to a trace that is not sampled, it does not.
func (l *links) waiting(ctx context.Context, e interlock.Event) {
	if span := trace.SpanContextFromContext(ctx); span.IsValid() && !span.IsSampled() {
		return
	}
	select {
	case l.room <- struct{}{}:
	default:
		l.count(e, "dropped")
		return
	}
	// The context of the call has its span, below which a client library may show the request.
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookTime)
	k := &look{cancel: cancel}
	l.asked.Store(e.Call, k)
	go func() { // ends with bounded
		defer func() { <-l.room }()
		defer cancel()
		l.count(e, k.run(bounded, e))
	}()
}

// run says how it went in one word.
func (k *look) run(ctx context.Context, e interlock.Event) string {
	info, err := e.Look(ctx)
	var found []trace.Link
	if err == nil {
		found = linksTo(info, e.Owner)
	}
	switch {
	case k.found.Load() == over:
		return "late"
	case err != nil:
		return "failed"
	case len(found) == 0:
		return "none"
	case !k.found.CompareAndSwap(nil, &found):
		return "late"
	}
	return "linked"
}

// linksTo returns links to the traces of those who hold the lock, the waiter itself left out: it may have got in.
func linksTo(info interlock.LockInfo, waiter string) (all []trace.Link) {
	for _, h := range info.Holders {
		span, is := spanIn(h.Label)
		if !is || h.Owner == waiter || h.Retained {
			continue
		}
		link := trace.Link{SpanContext: span}
		if h.Token != 0 {
			link.Attributes = append(link.Attributes, tokenKey.Int64(int64(h.Token))) // below 2^63
		}
		if all = append(all, link); len(all) == mostLinks {
			break
		}
	}
	return all
}

// of returns what was found for the call that e ends, and gives up a look that is under way.
func (l *links) of(e interlock.Event) []trace.Link {
	if l == nil || !e.Queued {
		return nil
	}
	kept, is := l.asked.LoadAndDelete(e.Call)
	if !is {
		return nil
	}
	k := kept.(*look)
	found := k.found.Swap(over)
	k.cancel()
	if found == nil {
		return nil
	}
	return *found
}

// count counts one look, or one that was not made.
func (l *links) count(e interlock.Event, result string) {
	l.looks.Add(background, 1, l.with(e, resultKey.String(result)))
}
