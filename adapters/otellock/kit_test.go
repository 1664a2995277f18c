package otellock

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/memlock"
	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
)

// engine is a memory engine whose renewals and acquisitions a test can have fail.
type engine struct {
	*memlock.Driver
	failRenewals, failAcquires atomic.Bool

	looks    atomic.Int64
	holdLook chan struct{} // each look waits for it, unless it is nil
}

var errReset = errors.New("connection reset")

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

func (d *engine) Look(ctx context.Context, key driver.Key) (driver.LockInfo, error) {
	d.looks.Add(1)
	if d.holdLook != nil {
		select {
		case <-d.holdLook:
		case <-ctx.Done():
			return driver.LockInfo{}, ctx.Err()
		}
	}
	return d.Driver.Look(ctx, key)
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

// kit is a client that is observed.
type kit struct {
	*interlock.Client
	t        *testing.T
	engine   *engine
	spans    *tracetest.InMemoryExporter
	provider *sdktrace.TracerProvider
	reader   *sdkmetric.ManualReader
	meters   *sdkmetric.MeterProvider
}

func newKit(t *testing.T, opts *Options) *kit {
	t.Helper()
	return newKitOf(t, opts, interlock.Options{})
}

// newKitOf is newKit for a client with those options.
func newKitOf(t *testing.T, opts *Options, client interlock.Options) *kit {
	t.Helper()
	k := &kit{t: t, engine: &engine{Driver: memlock.New(nil)}, spans: tracetest.NewInMemoryExporter()}
	k.reader = sdkmetric.NewManualReader()
	k.provider = sdktrace.NewTracerProvider(sdktrace.WithSyncer(k.spans))
	o := Options{}
	if opts != nil {
		o = *opts
	}
	if o.TracerProvider == nil {
		o.TracerProvider = k.provider
	}
	k.meters = sdkmetric.NewMeterProvider(sdkmetric.WithReader(k.reader))
	o.MeterProvider = k.meters
	client.Observer = New(&o)
	c, err := interlock.New(k.engine, &client)
	if err != nil {
		t.Fatal(err)
	}
	k.Client = c
	t.Cleanup(func() {
		_ = c.Close()
		_ = k.engine.Close()
	})
	return k
}

// peer is a client that nobody observes.
func (k *kit) peer() *interlock.Client { return k.peerOf(nil) }

// peerOf is peer with those options.
func (k *kit) peerOf(opts *interlock.Options) *interlock.Client {
	k.t.Helper()
	d := k.engine.Peer()
	c, err := interlock.New(d, opts)
	if err != nil {
		k.t.Fatal(err)
	}
	k.t.Cleanup(func() {
		_ = c.Close()
		_ = d.Close()
	})
	return c
}

func (k *kit) lock(m *interlock.Mutex) *interlock.Lease {
	k.t.Helper()
	l, err := m.Lock(k.t.Context())
	if err != nil {
		k.t.Fatal(err)
	}
	return l
}

func (k *kit) unlock(l *interlock.Lease) {
	k.t.Helper()
	if err := l.Unlock(k.t.Context()); err != nil {
		k.t.Error(err)
	}
}

// one returns the only span of that name that has ended since the last call.
func (k *kit) one(name string) tracetest.SpanStub {
	k.t.Helper()
	spans := slices.DeleteFunc(k.spans.GetSpans(), func(s tracetest.SpanStub) bool { return s.Name != name })
	if len(spans) != 1 {
		k.t.Fatalf("%d spans %q, want 1", len(spans), name)
	}
	return spans[0]
}

// has reports whether all of want are among attributes.
func has(attributes []attribute.KeyValue, want ...attribute.KeyValue) bool {
	return !slices.ContainsFunc(want, func(a attribute.KeyValue) bool { return !slices.Contains(attributes, a) })
}

// value adds up the points of that metric that have all of the attributes: values, or of a histogram how many there
// are.
func (k *kit) value(name string, attributes ...attribute.KeyValue) (sum int64) {
	k.t.Helper()
	all := k.collect()
	found := all[name]
	counts := func(set attribute.Set, n int64) {
		if has(set.ToSlice(), attributes...) {
			sum += n
		}
	}
	switch data := found.Data.(type) {
	case metricdata.Sum[int64]:
		for _, p := range data.DataPoints {
			counts(p.Attributes, p.Value)
		}
	case metricdata.Histogram[float64]:
		for _, p := range data.DataPoints {
			counts(p.Attributes, int64(p.Count))
		}
	}
	return sum
}

// collect returns what is exported, by name.
func (k *kit) collect() map[string]metricdata.Metrics {
	k.t.Helper()
	var got metricdata.ResourceMetrics
	if err := k.reader.Collect(context.WithoutCancel(k.t.Context()), &got); err != nil {
		k.t.Fatal(err)
	}
	all := make(map[string]metricdata.Metrics)
	for _, scope := range got.ScopeMetrics {
		for _, m := range scope.Metrics {
			all[m.Name] = m
		}
	}
	return all
}

func (k *kit) want(want int64, name string, attributes ...attribute.KeyValue) {
	k.t.Helper()
	if got := k.value(name, attributes...); got != want {
		k.t.Errorf("%s%v is %d, want %d", name, attributes, got, want)
	}
}
