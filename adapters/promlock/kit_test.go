package promlock

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/memlock"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// engine is a memory engine whose renewals and releases a test can have fail.
type engine struct {
	*memlock.Driver
	failRenewals, failAcquires, failReleases atomic.Bool
}

var errReset = errors.New("connection reset")

func newEngine(t *testing.T) *engine {
	t.Helper()
	d := &engine{Driver: memlock.New(nil)}
	t.Cleanup(func() { _ = d.Close() })
	return d
}

// Traits says that the engine is not in this process, as if there were a network in between.
func (d *engine) Traits() driver.Traits {
	traits := d.Driver.Traits()
	traits.Local = false
	return traits
}

func (d *engine) Acquire(ctx context.Context, r *driver.Request) (driver.Grant, error) {
	grant, err := d.Driver.Acquire(ctx, r)
	if d.failAcquires.Load() {
		return driver.Grant{}, errReset
	}
	return grant, err
}

func (d *engine) Renew(ctx context.Context, batch []driver.Renewal, done func(int, error)) {
	if !d.failRenewals.Load() {
		d.Driver.Renew(ctx, batch, done)
		return
	}
	for i := range batch {
		done(i, errReset)
	}
}

func (d *engine) Release(ctx context.Context, r *driver.Release) error {
	if d.failReleases.Load() {
		return errReset
	}
	return d.Driver.Release(ctx, r)
}

// client returns one of d that m observes. lease may be 0.
func client(t *testing.T, d driver.Driver, o *interlock.Observer, lease time.Duration) *interlock.Client {
	t.Helper()
	c, err := interlock.New(d, &interlock.Options{Observer: o, Lease: lease})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func must(t *testing.T) func(*interlock.Lease, error) *interlock.Lease {
	t.Helper()
	return func(l *interlock.Lease, err error) *interlock.Lease {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
}

func unlock(t *testing.T, l *interlock.Lease) {
	t.Helper()
	if err := l.Unlock(t.Context()); err != nil {
		t.Error(err)
	}
}

// gather returns what a scrape finds, by name.
func gather(t *testing.T, m *Metrics) map[string]*dto.MetricFamily {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	if err := registry.Register(m); err != nil {
		t.Fatal(err)
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	found := make(map[string]*dto.MetricFamily)
	for _, f := range families {
		found[f.GetName()] = f
	}
	return found
}

// value adds up the series of that name that have all of the labels, each given as "name=value": values, or of a
// histogram how many observations there were.
func value(t *testing.T, m *Metrics, name string, labels ...string) (sum float64) {
	t.Helper()
	f := gather(t, m)["interlock_"+name]
	if f == nil {
		return 0
	}
	for _, series := range f.GetMetric() {
		var has []string
		for _, l := range series.GetLabel() {
			has = append(has, l.GetName()+"="+l.GetValue())
		}
		if slices.ContainsFunc(labels, func(l string) bool { return !slices.Contains(has, l) }) {
			continue
		}
		sum += series.GetGauge().GetValue() + series.GetCounter().GetValue() +
			float64(series.GetHistogram().GetSampleCount())
	}
	return sum
}

// want compares one value.
func want(t *testing.T, m *Metrics, want float64, name string, labels ...string) {
	t.Helper()
	if got := value(t, m, name, labels...); got != want {
		t.Errorf("%s{%s} is %v, want %v", name, strings.Join(labels, ","), got, want)
	}
}

// gaugesAreZero fails if anything is counted as under way.
func gaugesAreZero(t *testing.T, m *Metrics) {
	t.Helper()
	for _, name := range []string{"waiting", "held", "retained", "settling"} {
		want(t, m, 0, name)
	}
}
