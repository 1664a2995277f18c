package otellock

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
)

// events are the names of those of a span.
func events(s tracetest.SpanStub) (names []string) {
	for _, e := range s.Events {
		names = append(names, e.Name)
	}
	return names
}

func TestTraces_ShowTheWaitAndTheHold_BelowTheCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t, nil)
		m := k.Mutex("a", &interlock.LockOptions{Class: "stock"})
		other := k.lock(k.peer().Mutex("a", nil))
		ctx, caller := k.provider.Tracer("test").Start(t.Context(), "caller")
		got := make(chan *interlock.Lease)
		go func() {
			l, err := m.Lock(ctx)
			if err != nil {
				t.Error(err)
			}
			got <- l
		}()
		synctest.Wait()
		time.Sleep(3 * time.Second)
		k.unlock(other)
		l := <-got
		token := tokenKey.Int64(int64(l.Token()))
		time.Sleep(2 * time.Second)
		k.unlock(l)

		wait, hold := k.one("lock wait"), k.one("lock hold")
		if d := wait.EndTime.Sub(wait.StartTime); d != 3*time.Second {
			t.Errorf("the wait took %v", d)
		}
		if d := hold.EndTime.Sub(hold.StartTime); d != 2*time.Second || !hold.StartTime.Equal(wait.EndTime) {
			t.Errorf("the hold took %v, from %v after %v", d, hold.StartTime, wait.EndTime)
		}
		lock := []string{"stock", "mutex", "memory"}
		for _, span := range []tracetest.SpanStub{wait, hold} {
			if !has(span.Attributes, classKey.String(lock[0]), kindKey.String(lock[1]), engineKey.String(lock[2]),
				nameKey.String("a"), token) {
				t.Errorf("%s: %v", span.Name, span.Attributes)
			}
			if span.Parent.SpanID() != caller.SpanContext().SpanID() || span.Status.Code != codes.Unset ||
				span.SpanKind != trace.SpanKindInternal {
				t.Errorf("%s: below %v, %v, %v", span.Name, span.Parent, span.Status, span.SpanKind)
			}
		}
		if !has(wait.Attributes, resultKey.String("acquired"), queuedKey.Bool(true), localKey.Bool(false)) {
			t.Errorf("the wait: %v", wait.Attributes)
		}
	})
}

func TestTraces_SayWhyAWaitHasFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t, nil)
		l := k.lock(k.peer().Mutex("a", nil))
		for want, call := range map[string]func() error{
			"held": func() error { _, err := k.TryLock(t.Context(), "a"); return err },
			"canceled": func() error {
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				_, err := k.Lock(ctx, "a")
				return err
			},
			"invalid": func() error { _, err := k.Lock(t.Context(), ""); return err },
		} {
			k.spans.Reset()
			err := call()
			span := k.one("lock wait")
			if !has(span.Attributes, resultKey.String(want)) {
				t.Errorf("%v: %v", err, span.Attributes)
			}
			failed := span.Status.Code == codes.Error && span.Status.Description == err.Error() && len(span.Events) == 1
			if failed != (want != "held") {
				t.Errorf("%s: %v, %v", want, span.Status, events(span))
			}
		}
		k.unlock(l)
	})
}

func TestTraces_ShowNearMissesAndTheLoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t, nil)
		l := k.lock(k.Mutex("a", nil))
		k.engine.failRenewals.Store(true)
		time.Sleep(20 * time.Second)
		k.engine.failRenewals.Store(false)
		time.Sleep(20 * time.Second)
		k.engine.failRenewals.Store(true)
		<-l.Lost()
		synctest.Wait()
		hold := k.one("lock hold")
		names := slices.Compact(events(hold))
		want := []string{"renewal failed", "renewal late", "renewal failed", "exception"}
		if !slices.Equal(names, want) {
			t.Errorf("events %q, want %q", names, want)
		}
		if hold.Status.Code != codes.Error || hold.Status.Description != l.Err().Error() ||
			!has(hold.Attributes, reasonKey.String(string(interlock.LostUnconfirmed))) {
			t.Errorf("%v, %v", hold.Status, hold.Attributes)
		}
	})
}

func TestTraces_ShowUpgradesAndRecalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t, nil)
		l, err := k.RWMutex("a", nil).UpgradeableRLock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		k.spans.Reset()
		if err := l.Upgrade(t.Context()); err != nil {
			t.Fatal(err)
		}
		if wait := k.one("lock wait"); !has(wait.Attributes, upgradeKey.Bool(true), tokenKey.Int64(int64(l.Token()))) {
			t.Errorf("the wait: %v", wait.Attributes)
		}
		k.unlock(l)
		if names := events(k.one("lock hold")); !slices.Equal(names, []string{"upgraded"}) {
			t.Errorf("events %q", names)
		}
		k.spans.Reset()
		l = k.lock(k.Mutex("b", &interlock.LockOptions{Retain: time.Minute}))
		if _, err := k.peer().TryLock(t.Context(), "b"); !errors.Is(err, interlock.ErrHeld) {
			t.Error(err)
		}
		k.unlock(l)
		if names := events(k.one("lock hold")); !slices.Equal(names, []string{"recalled"}) {
			t.Errorf("events %q", names)
		}
	})
}

func TestTraces_SayNothingOfNames_IfTheyAreToBeOmitted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t, &Options{OmitNames: true})
		const secret = "patient:Ada"
		l := k.lock(k.Mutex(secret, nil))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, _ = k.Lock(ctx, secret)
		k.engine.failRenewals.Store(true)
		<-l.Lost()
		synctest.Wait()
		if n := len(k.spans.GetSpans()); n != 3 {
			t.Errorf("%d spans, want 3", n)
		}
		for _, span := range k.spans.GetSpans() {
			said := span.Name + span.Status.Description
			for _, a := range span.Attributes {
				said += " " + a.Value.Emit()
			}
			for _, e := range span.Events {
				for _, a := range e.Attributes {
					said += " " + a.Value.Emit()
				}
			}
			if strings.Contains(said, "Ada") {
				t.Errorf("%s says %q", span.Name, said)
			}
		}
	})
}

// What is not sampled costs no memory for as long as the lock is held.
func TestTraces_KeepNothing_OfWhatIsNotSampledOrHasEnded(t *testing.T) {
	samplers := map[string]sdktrace.Sampler{"not": sdktrace.NeverSample(), "all": sdktrace.AlwaysSample()}
	for name, sampler := range samplers {
		exporter := tracetest.NewInMemoryExporter()
		provider := sdktrace.NewTracerProvider(sdktrace.WithSampler(sampler), sdktrace.WithSyncer(exporter))
		spans := &traces{tracer: provider.Tracer("test")}
		k := newKit(t, nil)
		c, err := interlock.New(k.engine, &interlock.Options{Observer: spans.observer()})
		if err != nil {
			t.Fatal(err)
		}
		kept := func() (n int) {
			spans.holds.Range(func(any, any) bool { n++; return true })
			return n
		}
		l := k.lock(c.Mutex("a", nil))
		if n, want := kept(), map[string]int{"not": 0, "all": 1}[name]; n != want {
			t.Errorf("%s: %d spans are kept, want %d", name, n, want)
		}
		k.unlock(l)
		if err := c.Close(); err != nil || kept() != 0 {
			t.Errorf("%s: %v, %d spans are kept at the end", name, err, kept())
		}
	}
}
