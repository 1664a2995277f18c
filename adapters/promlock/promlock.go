// Package promlock counts what happens to locks, as metrics for Prometheus.
//
//	metrics := promlock.New(nil)
//	prometheus.MustRegister(metrics)
//	locks, err := interlock.Open(ctx, url, &interlock.Options{Observer: metrics.Observer()})
//
// One Metrics serves any number of clients, of any engines. A program with an Observer of its own, or with traces,
// joins them by [interlock.JoinObservers].
//
// # Labels
//
// Series have the labels class ([interlock.LockOptions].Class), kind and engine, and at most two more from closed sets.
// Names of locks and owners are never labels, so the number of series does not grow with the number of locks. A program
// that uses more than 1,000 different classes has used it for names: later ones count as "other".
//
// # Metrics
//
// Durations are in seconds. Histograms are classic and native ones: Prometheus takes the native buckets if it is set
// up for them.
//
//	interlock_waiting                     gauge      calls that wait for another owner
//	interlock_held                        gauge      holds, re-entries included
//	interlock_retained                    gauge      locks that are kept for the next Lock of this process
//	interlock_settling                    gauge      releases and undos that go on in the background
//	interlock_acquire_total               counter    calls for a lock that have ended, by result, local
//	interlock_acquire_duration_seconds    histogram  from such a call to its hold
//	interlock_hold_duration_seconds       histogram  from the grant to the end of the hold
//	interlock_lost_total                  counter    holds that were lost, by reason
//	interlock_renewals_total              counter    renewals, by result: ok, late (a near miss) and failed
//	interlock_renewal_remaining_seconds   histogram  what was left of the trust when a renewal was confirmed
//	interlock_recalled_total              counter    locks that another process has asked for
//
// The repository has alert rules and a dashboard for them (deploy). docs/observability.md says what each metric means,
// docs/alerts.md what to do about each alert. An alert on failed or late renewals comes before a lock is lost:
//
//	sum by (class, engine) (rate(interlock_renewals_total{result=~"late|failed"}[5m])) > 0
//
// The result of interlock_acquire_total is that of [interlock.Event].Result. local is "true" for a lock that was passed
// on inside the process or re-entered, without a request of its own. A Cond.Wait counts as acquired, and has no
// duration, because most of it is the wait for the signal.
//
// Recording never fails and waits for nothing but a mutex for a moment. In classes, bytes that are not UTF-8 are
// replaced.
package promlock

import (
	"context"
	"strconv"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/adapters/metriclabels"
	"github.com/prometheus/client_golang/prometheus"
)

// Options configures Metrics. nil means all defaults.
type Options struct {
	// Buckets are the upper bounds of the classic buckets of durations, in seconds. More are more series. The default
	// is 18 from 0.5 ms to 60 s.
	Buckets []float64

	_ struct{}
}

// Metrics counts. It is a prometheus.Collector, to be registered once, and safe for concurrent use. Make one with New.
type Metrics struct {
	waiting, held, retained, settling      *prometheus.GaugeVec
	acquire, lost, renewals, recalled      *prometheus.CounterVec
	acquireDuration, holdDuration, remains *prometheus.HistogramVec

	series seriesOf
}

var _ prometheus.Collector = (*Metrics)(nil)

// New returns metrics, all without values yet.
func New(opts *Options) *Metrics {
	m := &Metrics{
		waiting:  gauge("waiting", "Calls that wait for another owner of a lock."),
		held:     gauge("held", "Holds of locks, re-entries included."),
		retained: gauge("retained", "Locks that nobody holds and the client keeps for the next Lock of this process."),
		settling: gauge("settling", "Releases and undos that go on in the background until the engine confirms them."),
		acquire:  counter("acquire_total", "Calls for a lock that have ended.", "result", "local"),
		lost:     counter("lost_total", "Holds that were lost.", "reason"),
		renewals: counter("renewals_total", "Renewals of holds: ok, late (a near miss) or failed.", "result"),
		recalled: counter("recalled_total", "Locks held or retained here that another process has asked for."),

		acquireDuration: histogram(opts, "acquire_duration_seconds", "Time from a call for a lock to its hold."),
		holdDuration: histogram(opts, "hold_duration_seconds",
			"Time from the grant of a lock to the end of the hold."),
		remains: histogram(opts, "renewal_remaining_seconds",
			"Time that was left of the trust in a hold when a renewal was confirmed."),
	}
	m.series.m = m
	return m
}

// Observer returns the value of [interlock.Options].Observer.
func (m *Metrics) Observer() *interlock.Observer {
	return &interlock.Observer{
		Waiting:  func(_ context.Context, e interlock.Event) { m.series.of(e).waiting.Inc() },
		Acquired: func(_ context.Context, e interlock.Event) { m.acquired(e) },
		Upgraded: func(_ context.Context, e interlock.Event) { m.called(e) },
		Failed:   func(_ context.Context, e interlock.Event) { m.called(e) },
		Renewed:  m.renewed,
		RenewalFailed: func(e interlock.Event) {
			m.series.of(e).renewals[failed].Inc()
		},
		Lost: func(e interlock.Event) {
			m.ended(e)
			m.series.of(e).lost[metriclabels.Reason(e.Reason)].Inc()
		},
		Released:       m.ended,
		Retained:       func(e interlock.Event) { m.series.of(e).retained.Inc() },
		RetentionEnded: func(e interlock.Event) { m.series.of(e).retained.Dec() },
		Recalled:       func(e interlock.Event) { m.series.of(e).recalled.Inc() },
		Settling:       func(e interlock.Event) { m.series.of(e).settling.Inc() },
		Settled:        func(e interlock.Event) { m.series.of(e).settling.Dec() },
	}
}

// acquired counts a new hold.
func (m *Metrics) acquired(e interlock.Event) {
	s := m.series.of(e)
	s.held.Inc()
	if !e.Cond {
		s.acquireDuration.Observe(e.Waited.Seconds())
	}
	m.called(e)
}

// called counts the end of a call.
func (m *Metrics) called(e interlock.Event) {
	s := m.series.of(e)
	if e.Queued {
		s.waiting.Dec()
	}
	m.acquire.WithLabelValues(append(s.labels.values(), string(e.Result()), strconv.FormatBool(e.Local))...).Inc()
}

// ended counts the end of a hold.
func (m *Metrics) ended(e interlock.Event) {
	s := m.series.of(e)
	s.held.Dec()
	s.holdDuration.Observe(e.Held.Seconds())
}

// renewed counts a renewal that was confirmed.
func (m *Metrics) renewed(e interlock.Event) {
	s, result := m.series.of(e), ok
	if e.Late {
		result = late
	}
	s.renewals[result].Inc()
	s.remains.Observe(e.Margin.Seconds())
}

// Describe is for the registry.
func (m *Metrics) Describe(ch chan<- *prometheus.Desc) {
	for _, c := range m.collectors() {
		c.Describe(ch)
	}
}

// Collect is for the registry.
func (m *Metrics) Collect(ch chan<- prometheus.Metric) {
	for _, c := range m.collectors() {
		c.Collect(ch)
	}
}

func (m *Metrics) collectors() []prometheus.Collector {
	return []prometheus.Collector{
		m.waiting, m.held, m.retained, m.settling, m.acquire, m.lost, m.renewals, m.recalled,
		m.acquireDuration, m.holdDuration, m.remains,
	}
}
