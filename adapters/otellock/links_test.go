package otellock

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
)

// linking has calls link to holders, and labels of its own calls tell their traces.
var linking = &Options{LinkHolders: true}

// holder is another client, whose labels tell the traces of its calls.
func (k *kit) holder() *interlock.Client {
	return k.peerOf(&interlock.Options{LabelFrom: Label})
}

// span begins one in a trace of its own.
func (k *kit) span() (context.Context, trace.SpanContext) {
	ctx, span := k.provider.Tracer("test").Start(k.t.Context(), "call")
	k.t.Cleanup(func() { span.End() })
	return ctx, span.SpanContext()
}

// locker is a Mutex or an RWMutex.
type locker interface {
	Lock(ctx context.Context) (*interlock.Lease, error)
}

// lockIn takes m in a call with ctx.
func (k *kit) lockIn(ctx context.Context, m locker) *interlock.Lease {
	k.t.Helper()
	l, err := m.Lock(ctx)
	if err != nil {
		k.t.Fatal(err)
	}
	return l
}

// waits has n calls wait for the lock "a", which other holds, until they have looked at it, and then get it.
func (k *kit) waits(n int, other *interlock.Lease) []tracetest.SpanStub {
	k.t.Helper()
	k.spans.Reset()
	got := make(chan error)
	for range n {
		go func() {
			l, err := k.Lock(k.t.Context(), "a")
			if err == nil {
				err = l.Unlock(k.t.Context())
			}
			got <- err
		}()
	}
	synctest.Wait()
	if other != nil {
		k.unlock(other)
	}
	for range n {
		if err := <-got; err != nil {
			k.t.Error(err)
		}
	}
	synctest.Wait()
	var waits []tracetest.SpanStub
	for _, span := range k.spans.GetSpans() {
		if span.Name == "lock wait" {
			waits = append(waits, span)
		}
	}
	return waits
}

// leads fails unless the only link of a span leads there.
func leads(t *testing.T, span tracetest.SpanStub, to trace.SpanContext) {
	t.Helper()
	if len(span.Links) != 1 || span.Links[0].SpanContext.TraceID() != to.TraceID() ||
		span.Links[0].SpanContext.SpanID() != to.SpanID() {
		t.Errorf("%s has the links %+v, want one to %s of %s", span.Name, span.Links, to.SpanID(), to.TraceID())
	}
}

func TestLinks_LeadToTheCallThatHoldsTheLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t, linking)
		ctx, call := k.span()
		l := k.lockIn(ctx, k.holder().Mutex("a", &interlock.LockOptions{Label: "nightly"}))
		wait := k.waits(1, l)[0]
		leads(t, wait, call)
		if token := tokenKey.Int64(int64(l.Token())); !has(wait.Links[0].Attributes, token) {
			t.Errorf("the link says %v", wait.Links[0].Attributes)
		}
		if k.engine.looks.Load() != 1 {
			t.Errorf("%d looks", k.engine.looks.Load())
		}
		k.want(1, "interlock.links", resultKey.String("linked"), kindKey.String("mutex"))
		k.unlock(k.lock(k.Mutex("a", nil))) // which does not wait
		k.want(1, "interlock.links")
	})
}

// Who was given the lock inside its process is known there at once, and elsewhere soon.
func TestLinks_LeadToTheHolderAfterAPass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		own := interlock.Options{LabelFrom: Label, LocalHandoffTime: time.Hour}
		for _, where := range []string{"inside", "outside"} {
			k := newKitOf(t, linking, own)
			holder := k.Client
			if where == "outside" {
				holder = k.peerOf(&own)
			}
			first := k.lock(holder.Mutex("a", nil))
			ctx, call := k.span()
			got := make(chan *interlock.Lease)
			go func() { got <- k.lockIn(ctx, holder.Mutex("a", nil)) }()
			synctest.Wait()
			k.unlock(first)
			second := <-got
			if where == "outside" {
				time.Sleep(200 * time.Millisecond)
				synctest.Wait()
			}
			leads(t, k.waits(1, second)[0], call)
		}
	})
}

func TestLinks_LeadToReaders_NotToAllOfVeryMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t, linking)
		for _, readers := range []int{2, 2 * mostLinks} {
			locks, calls := k.holder().RWMutex("a", nil), map[trace.SpanID]bool{}
			var held []*interlock.Lease
			for range readers {
				ctx, call := k.span()
				l, err := locks.RLock(ctx)
				if err != nil {
					t.Fatal(err)
				}
				held, calls[call.SpanID()] = append(held, l), true
			}
			k.spans.Reset()
			got := make(chan *interlock.Lease)
			go func() { got <- k.lockIn(t.Context(), k.RWMutex("a", nil)) }()
			synctest.Wait()
			for _, l := range held {
				k.unlock(l)
			}
			k.unlock(<-got)
			wait := k.one("lock wait")
			for _, link := range wait.Links {
				if !calls[link.SpanContext.SpanID()] {
					t.Errorf("a link to %v, or a second one", link)
				}
				delete(calls, link.SpanContext.SpanID())
			}
			if want := min(readers, mostLinks); len(wait.Links) != want {
				t.Errorf("%d links to %d readers, want %d", len(wait.Links), readers, want)
			}
		}
	})
}

// Nothing travels and nothing is asked unless both sides want it.
func TestLinks_AreMadeOnlyIfBothSidesWantThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, tells := range []bool{false, true} {
			for _, links := range []bool{false, true} {
				k := newKit(t, &Options{LinkHolders: links})
				holder, label := k.peer(), "nightly"
				if tells {
					holder = k.holder()
				}
				ctx, call := k.span()
				if tells {
					label = Label(ctx, label)
				}
				l := k.lockIn(ctx, holder.Mutex("a", &interlock.LockOptions{Label: "nightly"}))
				info, err := holder.Look(ctx, interlock.KindMutex, "a")
				if err != nil || info.Holders[0].Label != label {
					t.Errorf("tells %v: the lock shows %+v, %v", tells, info, err)
				}
				wait := k.waits(1, l)[0]
				if tells && links {
					leads(t, wait, call)
				} else if len(wait.Links) > 0 {
					t.Errorf("tells %v, links %v: %+v", tells, links, wait.Links)
				}
				looks := map[bool]int64{true: 1}[links]
				if got := k.engine.looks.Load(); got != looks {
					t.Errorf("tells %v, links %v: %d looks, want %d", tells, links, got, looks)
				}
				if _, is := k.collect()["interlock.links"]; is != links {
					t.Errorf("links %v: the metric is there: %v", links, is)
				}
			}
		}
	})
}

func TestLinks_AreMissing_IfTheLabelTellsNoTrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for what, label := range map[string]string{
			"too long": strings.Repeat("x", 200), "foreign": mark + "00-broken", "none": "",
		} {
			k := newKit(t, linking)
			holder := k.holder()
			if what == "foreign" {
				holder = k.peer()
			}
			ctx := t.Context()
			if what == "too long" {
				ctx, _ = k.span()
			}
			l := k.lockIn(ctx, holder.Mutex("a", &interlock.LockOptions{Label: label}))
			if wait := k.waits(1, l)[0]; len(wait.Links) > 0 {
				t.Errorf("%s: %+v", what, wait.Links)
			}
			k.want(1, "interlock.links", resultKey.String("none"))
		}
	})
}

func TestLinksTo_LeavesOutTheWaiterItself_AndWhomNobodyIs(t *testing.T) {
	holders := []driver.Holder{
		{Owner: "waiter", Label: example}, {Owner: "", Retained: true, Label: example},
		{Owner: "other", Label: example},
	}
	links := linksTo(interlock.LockInfo{Holders: holders}, "waiter")
	if len(links) != 1 || len(links[0].Attributes) != 0 {
		t.Errorf("%+v", links)
	}
}
