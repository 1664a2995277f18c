// Package otellock makes traces and metrics of locks, for OpenTelemetry.
//
//	locks, err := interlock.Open(ctx, url, &interlock.Options{Observer: otellock.New(nil)})
//
// One Observer serves any number of clients, of any engines. A program with an Observer of its own joins them by
// [interlock.JoinObservers]. The package uses the API of OpenTelemetry alone: without an SDK in the program it costs
// next to nothing.
//
// # Traces
//
// Each call for a lock is a span "lock wait", and each hold a span "lock hold", from the grant until it was released or
// lost. Both are children of the span in the context of the call. The work under the lock has that same parent: an
// Observer cannot put the span of the hold into the context that the work gets.
//
//	interlock.kind, interlock.class, interlock.engine  of the lock
//	interlock.name                                     of the lock, unless Options.OmitNames
//	interlock.token                                    the fencing token, below 2^63
//	interlock.result                                   of a wait: see interlock.Event.Result
//	interlock.queued, interlock.local                  of a wait: whether it had to wait; was passed on in the process
//	interlock.upgrade                                  of a wait: whether it was an Upgrade
//	interlock.reason                                   of a hold that was lost
//
// A wait that has failed has the status Error and the error as an event; a try whose lock is held by another owner is
// no error. A hold has the events "renewal failed", "renewal late", "recalled" and "upgraded". A hold that was lost has
// the status Error and the *interlock.LostError as an event. A release that is not confirmed yet is an event of a hold
// that is no error.
//
// # Links
//
// A wait can link to the trace of the holder in its way. Both sides have to ask for it: the holder's client by
// [interlock.Options].LabelFrom, which puts the trace into the label of the lock, and the waiter's by
// Options.LinkHolders, which looks for it there:
//
//	observer := otellock.New(&otellock.Options{LinkHolders: true})
//	locks, err := interlock.Open(ctx, url, &interlock.Options{Observer: observer, LabelFrom: otellock.Label})
//
// The link is to the span in the context of the holder's call, with the attribute interlock.token of the hold. It is
// a hint: what the engine showed when the wait began. A link is missing if the wait is over before the look, and of
// looks beyond 4 at once. After a pass inside another process the engine may show an earlier holder of that process:
// for about 100 ms where holds have leases (Redis, memory), and elsewhere until that process gives the lock back.
//
// # Metrics
//
// They are those of package promlock, with dots; durations are in seconds (s). Attributes are interlock.class,
// interlock.kind and interlock.engine, and of some interlock.result, interlock.local or interlock.reason. Names of
// locks and owners are never among them. A program that uses more than 1,000 different classes has used them for names:
// later ones count as "other". Spans keep their class.
//
//	interlock.waiting            up-down counter  calls that wait for another owner
//	interlock.held               up-down counter  holds, re-entries included
//	interlock.retained           up-down counter  locks that are kept for the next Lock of this process
//	interlock.settling           up-down counter  releases and undos that go on in the background
//	interlock.acquire            counter          calls for a lock that have ended, by result and local
//	interlock.acquire.duration   histogram        from such a call to its hold
//	interlock.hold.duration      histogram        from the grant to the end of the hold
//	interlock.lost               counter          holds that were lost, by reason
//	interlock.renewals           counter          renewals, by result: ok, late (a near miss) and failed
//	interlock.renewal.remaining  histogram        what was left of the trust when a renewal was confirmed
//	interlock.recalled           counter          locks that another process has asked for
//	interlock.links              counter          looks for Options.LinkHolders, by result; only with that
//
// Results of looks are linked, none (no holder's label has a trace), late (the wait was over before), dropped (too many
// at once) and failed (the engine did not tell, or not within a second).
//
// A Cond.Wait counts as acquired, and has neither a wait nor its duration, because most of it is the wait for the
// signal.
package otellock

import (
	"context"

	"github.com/interlock-go/interlock"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"
)

// scope names this package to OpenTelemetry.
const scope = "github.com/interlock-go/interlock/adapters/otellock"

// Options configures an Observer. nil means all defaults.
type Options struct {
	// TracerProvider is for traces. The default is that of otel.GetTracerProvider at the time of New; to have none,
	// take that of go.opentelemetry.io/otel/trace/noop.
	TracerProvider trace.TracerProvider

	// MeterProvider is for metrics. The default is that of otel.GetMeterProvider at the time of New; to have none, take
	// that of go.opentelemetry.io/otel/metric/noop.
	MeterProvider metric.MeterProvider

	// LinkHolders links the span "lock wait" of each call that had to wait to the traces of up to 8 holders, if their
	// labels have one; see [Label]. It costs one look at the lock for each such call, in the background:
	// [interlock.Client.Look], one round trip on nearly every engine. Calls whose own trace is not sampled do not look.
	// At most 4 looks are under way at once, for at most a second each; a wait that comes beyond is not linked.
	LinkHolders bool

	// OmitNames leaves the names of locks out of traces, also out of the texts of errors, which are replaced by their
	// results and reasons: for names that contain what must not leave the program.
	OmitNames bool

	_ struct{}
}

// New returns the value of [interlock.Options].Observer. What an SDK does not accept goes to otel.Handle, and is not
// counted; New does not fail for that.
func New(opts *Options) *interlock.Observer {
	var o Options
	if opts != nil {
		o = *opts
	}
	if o.TracerProvider == nil {
		o.TracerProvider = otel.GetTracerProvider()
	}
	if o.MeterProvider == nil {
		o.MeterProvider = otel.GetMeterProvider()
	}
	metrics := newMetrics(o.MeterProvider.Meter(scope))
	traces := &traces{tracer: o.TracerProvider.Tracer(scope), omitNames: o.OmitNames}
	if o.LinkHolders {
		traces.links = newLinks(metrics)
	}
	return interlock.JoinObservers(metrics.observer(), traces.observer())
}

// background is for what is recorded outside of any call.
var background = context.Background() //nolint:forbidigo // an Observer is told of what belongs to no call
