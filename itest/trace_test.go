package itest

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/adapters/otellock"
	"github.com/interlock-go/interlock/internal/servers"
	_ "github.com/interlock-go/interlock/redislock"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
)

// service is a program with a client, spans and metrics of its own.
type service struct {
	*interlock.Client
	t        *testing.T
	spans    *tracetest.InMemoryExporter
	provider *sdktrace.TracerProvider
	metrics  *sdkmetric.ManualReader
	waits    chan struct{} // has one for each call that began to wait
}

func newService(t *testing.T, url string) *service {
	t.Helper()
	s := &service{
		t: t, spans: tracetest.NewInMemoryExporter(), metrics: sdkmetric.NewManualReader(),
		waits: make(chan struct{}, 10),
	}
	s.provider = sdktrace.NewTracerProvider(sdktrace.WithSyncer(s.spans))
	c, err := interlock.Open(t.Context(), url, &interlock.Options{
		LocalHandoffTime: time.Hour,
		LabelFrom:        otellock.Label,
		Observer: interlock.JoinObservers(
			otellock.New(&otellock.Options{
				TracerProvider: s.provider, LinkHolders: true,
				MeterProvider: sdkmetric.NewMeterProvider(sdkmetric.WithReader(s.metrics)),
			}),
			&interlock.Observer{Waiting: func(context.Context, interlock.Event) { s.waits <- struct{}{} }},
		),
	})
	if err != nil {
		t.Fatal(err)
	}
	s.Client = c
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// lock begins to take the lock, in a trace of its own, and returns the span of the call.
func (s *service) lock() (<-chan *interlock.Lease, trace.SpanContext) {
	ctx, span := s.provider.Tracer("itest").Start(s.t.Context(), "request")
	got := make(chan *interlock.Lease, 1)
	go func() {
		defer close(got)
		defer span.End()
		l, err := s.Lock(ctx, "order:42")
		if err != nil {
			s.t.Error(err)
			return
		}
		got <- l
	}()
	return got, span.SpanContext()
}

// given returns the hold that comes.
func (s *service) given(got <-chan *interlock.Lease) *interlock.Lease {
	s.t.Helper()
	l := <-got
	if l == nil {
		s.t.FailNow()
	}
	return l
}

func (s *service) unlock(l *interlock.Lease) {
	s.t.Helper()
	if err := l.Unlock(s.t.Context()); err != nil {
		s.t.Error(err)
	}
}

// looked counts the looks that are over.
func (s *service) looked() (n int64) {
	s.t.Helper()
	var all metricdata.ResourceMetrics
	if err := s.metrics.Collect(s.t.Context(), &all); err != nil {
		s.t.Fatal(err)
	}
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			if m.Name != "interlock.links" {
				continue
			}
			for _, p := range m.Data.(metricdata.Sum[int64]).DataPoints {
				n += p.Value
			}
		}
	}
	return n
}

// soon waits until something is so.
func (s *service) soon(what string, is func() bool) {
	s.t.Helper()
	for end := time.Now().Add(15 * time.Second); !is(); <-time.After(2 * time.Millisecond) {
		if time.Now().After(end) {
			s.t.Fatalf("not after 15 s: %s", what)
		}
	}
}

// waitsFor has s wait for what holder has, and fails unless the span of the wait leads to that call.
func (s *service) waitsFor(holder *interlock.Lease, call trace.SpanContext) {
	s.t.Helper()
	s.spans.Reset()
	before := s.looked()
	got, _ := s.lock()
	s.soon("it has looked at the lock", func() bool { return s.looked() > before })
	s.unlock(holder)
	s.unlock(s.given(got))
	for _, span := range s.spans.GetSpans() {
		if span.Name != "lock wait" {
			continue
		}
		if len(span.Links) != 1 || span.Links[0].SpanContext.TraceID() != call.TraceID() ||
			span.Links[0].SpanContext.SpanID() != call.SpanID() {
			s.t.Errorf("the wait has the links %+v, want one to %s of %s", span.Links, call.SpanID(), call.TraceID())
		}
		return
	}
	s.t.Error("the wait has no span")
}

// The span of a wait leads to the trace of whoever holds the lock in another program, over a real Redis: at first, and
// after it has passed on inside that program.
func TestTrace_OfAWait_LeadsToTheHolder(t *testing.T) {
	url := "redis://" + servers.Redis(t)
	a, b := newService(t, url), newService(t, url)
	got, call := a.lock()
	b.waitsFor(a.given(got), call)

	got, _ = a.lock()
	first := a.given(got)
	got, call = a.lock()
	<-a.waits
	a.unlock(first)
	second := a.given(got)
	if second.Token() != first.Token()+1 {
		t.Fatalf("the hold %d was not passed on from %d", second.Token(), first.Token())
	}
	b.soon("Redis shows the label of the hold", func() bool {
		info, err := b.Look(t.Context(), interlock.KindMutex, "order:42")
		return err == nil && len(info.Holders) == 1 && strings.Contains(info.Holders[0].Label, call.TraceID().String())
	})
	b.waitsFor(second, call)
}
