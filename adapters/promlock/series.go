package promlock

import (
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/adapters/metriclabels"
	"github.com/prometheus/client_golang/prometheus"
)

// The results of a renewal.
const (
	ok     = "ok"
	late   = "late"
	failed = "failed"
)

// labels are those that all series have.
type labels struct{ class, kind, engine string }

var labelNames = []string{"class", "kind", "engine"}

func (l labels) values() []string { return []string{l.class, l.kind, l.engine} }

// series are the metrics of one combination of labels. Those that count what is rare are there from the beginning: a
// rate over a counter that appears with its first value would miss that.
type series struct {
	labels labels

	waiting, held, retained, settling      prometheus.Gauge
	acquireDuration, holdDuration, remains prometheus.Observer
	recalled                               prometheus.Counter
	lost                                   map[interlock.LostReason]prometheus.Counter
	renewals                               map[string]prometheus.Counter
}

// seriesOf finds series without the work that a Vec has with its labels.
type seriesOf struct {
	m       *Metrics
	classes metriclabels.Classes

	mu sync.RWMutex // guards by
	by map[labels]*series
}

// of returns the series in which e counts.
func (s *seriesOf) of(e interlock.Event) *series {
	at := labels{e.Class, string(e.Kind), e.Engine}
	s.mu.RLock()
	found := s.by[at]
	s.mu.RUnlock()
	if found != nil {
		return found
	}
	at.class = s.classes.Of(at.class)
	return s.make(at)
}

// make returns the series of those labels, which it makes if nobody else has.
func (s *seriesOf) make(at labels) *series {
	s.mu.Lock()
	defer s.mu.Unlock()
	if found := s.by[at]; found != nil {
		return found
	}
	if s.by == nil {
		s.by = make(map[labels]*series)
	}
	made := s.m.newSeries(labels{valid(at.class), valid(at.kind), valid(at.engine)})
	s.by[at] = made
	return made
}

// newSeries gets the metrics of l from their vectors, which have one of each: two classes may differ only in what valid
// replaces.
func (m *Metrics) newSeries(l labels) *series {
	values := l.values()
	s := &series{
		labels:  l,
		waiting: m.waiting.WithLabelValues(values...), held: m.held.WithLabelValues(values...),
		retained: m.retained.WithLabelValues(values...), settling: m.settling.WithLabelValues(values...),
		acquireDuration: m.acquireDuration.WithLabelValues(values...),
		holdDuration:    m.holdDuration.WithLabelValues(values...),
		remains:         m.remains.WithLabelValues(values...),
		recalled:        m.recalled.WithLabelValues(values...),
		lost:            make(map[interlock.LostReason]prometheus.Counter),
		renewals:        make(map[string]prometheus.Counter),
	}
	for _, reason := range metriclabels.Reasons() {
		s.lost[reason] = m.lost.WithLabelValues(append(l.values(), string(reason))...)
	}
	for _, result := range []string{ok, late, failed} {
		s.renewals[result] = m.renewals.WithLabelValues(append(l.values(), result)...)
	}
	return s
}

// valid is s as Prometheus takes it. For other labels a Vec panics.
func valid(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

const namespace = "interlock"

// nativeReset is how long a native histogram has its resolution at least.
const nativeReset = time.Hour

// defaultBuckets reach from what memory takes to what makes a user give up.
var defaultBuckets = []float64{
	0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 15, 20, 30, 60,
}

func gauge(name, help string) *prometheus.GaugeVec {
	return prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: namespace, Name: name, Help: help}, labelNames)
}

func counter(name, help string, more ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: namespace, Name: name, Help: help},
		append(slices.Clone(labelNames), more...))
}

func histogram(opts *Options, name, help string) *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Namespace: namespace, Name: name, Help: help,
		Buckets: buckets(opts),
		// A factor of 1.1 makes an error of at most 5 %; the bounds are those that Prometheus recommends.
		NativeHistogramBucketFactor:     1.1,
		NativeHistogramMaxBucketNumber:  160,
		NativeHistogramMinResetDuration: nativeReset,
	}, labelNames)
}

// buckets are the classic ones, in order and each once: for others a histogram panics.
func buckets(opts *Options) []float64 {
	if opts == nil || len(opts.Buckets) == 0 {
		return defaultBuckets
	}
	sorted := slices.DeleteFunc(slices.Clone(opts.Buckets), math.IsNaN)
	slices.Sort(sorted)
	return slices.Compact(sorted)
}
