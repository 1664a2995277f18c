package otellock

import (
	"context"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/adapters/metriclabels"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// metrics counts what happens to locks.
type metrics struct {
	meter   metric.Meter
	classes metriclabels.Classes

	waiting, held, retained, settling      metric.Int64UpDownCounter
	acquire, lost, renewals, recalled      metric.Int64Counter
	acquireDuration, holdDuration, remains metric.Float64Histogram
}

// newMetrics makes the instruments.
func newMetrics(meter metric.Meter) *metrics {
	m := &metrics{meter: meter}
	m.waiting = m.gauge("interlock.waiting", "{call}", "Calls that wait for another owner of a lock.")
	m.held = m.gauge("interlock.held", "{hold}", "Holds of locks, re-entries included.")
	m.retained = m.gauge("interlock.retained", "{lock}",
		"Locks that nobody holds and the client keeps for the next Lock of this process.")
	m.settling = m.gauge("interlock.settling", "{release}",
		"Releases and undos that go on in the background until the engine confirms them.")
	m.acquire = m.counter("interlock.acquire", "{call}", "Calls for a lock that have ended.")
	m.lost = m.counter("interlock.lost", "{hold}", "Holds that were lost.")
	m.renewals = m.counter("interlock.renewals", "{renewal}", "Renewals of holds: ok, late (a near miss) or failed.")
	m.recalled = m.counter("interlock.recalled", "{lock}",
		"Locks held or retained here that another process has asked for.")
	m.acquireDuration = m.histogram("interlock.acquire.duration", "Time from a call for a lock to its hold.")
	m.holdDuration = m.histogram("interlock.hold.duration", "Time from the grant of a lock to the end of the hold.")
	m.remains = m.histogram("interlock.renewal.remaining",
		"Time that was left of the trust in a hold when a renewal was confirmed.")
	return m
}

func (m *metrics) observer() *interlock.Observer {
	return &interlock.Observer{
		Waiting:  func(ctx context.Context, e interlock.Event) { m.waiting.Add(ctx, 1, m.with(e)) },
		Acquired: m.acquired,
		Upgraded: m.called,
		Failed:   m.called,
		Renewed:  m.renewed,
		RenewalFailed: func(e interlock.Event) {
			m.renewals.Add(background, 1, m.with(e, resultKey.String("failed")))
		},
		Lost: func(e interlock.Event) {
			m.ended(e)
			m.lost.Add(background, 1, m.with(e, reasonKey.String(string(metriclabels.Reason(e.Reason)))))
		},
		Released:       m.ended,
		Retained:       func(e interlock.Event) { m.retained.Add(background, 1, m.with(e)) },
		RetentionEnded: func(e interlock.Event) { m.retained.Add(background, -1, m.with(e)) },
		Recalled:       func(e interlock.Event) { m.recalled.Add(background, 1, m.with(e)) },
		Settling:       func(e interlock.Event) { m.settling.Add(background, 1, m.with(e)) },
		Settled:        func(e interlock.Event) { m.settling.Add(background, -1, m.with(e)) },
	}
}

// with returns the attributes of e, and those given. A span may have any class, a metric has a bounded number of them.
func (m *metrics) with(e interlock.Event, more ...attribute.KeyValue) metric.MeasurementOption {
	e.Class = m.classes.Of(e.Class)
	return metric.WithAttributes(append(describe(e), more...)...)
}

// acquired counts a new hold.
func (m *metrics) acquired(ctx context.Context, e interlock.Event) {
	m.held.Add(ctx, 1, m.with(e))
	if !e.Cond {
		m.acquireDuration.Record(ctx, e.Waited.Seconds(), m.with(e))
	}
	m.called(ctx, e)
}

// called counts the end of a call.
func (m *metrics) called(ctx context.Context, e interlock.Event) {
	if e.Queued {
		m.waiting.Add(ctx, -1, m.with(e))
	}
	m.acquire.Add(ctx, 1, m.with(e, resultKey.String(string(e.Result())), localKey.Bool(e.Local)))
}

// ended counts the end of a hold.
func (m *metrics) ended(e interlock.Event) {
	m.held.Add(background, -1, m.with(e))
	m.holdDuration.Record(background, e.Held.Seconds(), m.with(e))
}

// renewed counts a renewal that was confirmed.
func (m *metrics) renewed(e interlock.Event) {
	result := "ok"
	if e.Late {
		result = "late"
	}
	m.renewals.Add(background, 1, m.with(e, resultKey.String(result)))
	m.remains.Record(background, e.Margin.Seconds(), m.with(e))
}

func (m *metrics) gauge(name, unit, text string) metric.Int64UpDownCounter {
	i, err := m.meter.Int64UpDownCounter(name, metric.WithUnit(unit), metric.WithDescription(text))
	handle(err)
	return i
}

func (m *metrics) counter(name, unit, text string) metric.Int64Counter {
	i, err := m.meter.Int64Counter(name, metric.WithUnit(unit), metric.WithDescription(text))
	handle(err)
	return i
}

func (m *metrics) histogram(name, text string) metric.Float64Histogram {
	i, err := m.meter.Float64Histogram(name, metric.WithUnit("s"), metric.WithDescription(text),
		metric.WithExplicitBucketBoundaries(buckets...))
	handle(err)
	return i
}

// buckets reach from what memory takes to what makes a user give up, in seconds.
var buckets = []float64{
	0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 15, 20, 30, 60,
}

// handle reports what an SDK does not accept. The instrument that came with it does nothing.
func handle(err error) {
	if err != nil {
		otel.Handle(err)
	}
}
