package otellock

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/memlock"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// silent is an engine that tells nothing of its locks.
type silent struct {
	driver.Driver
	driver.Renewer
}

func TestLinks_AreMissing_IfTheEngineDoesNotTell(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t, linking)
		d := memlock.New(nil)
		c, err := interlock.New(silent{d, d}, &interlock.Options{LabelFrom: Label, Observer: New(&Options{
			TracerProvider: k.provider, MeterProvider: k.meters, LinkHolders: true,
		})})
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		defer c.Close()
		k.Client = c
		if wait := k.waits(1, nil)[0]; len(wait.Links) > 0 {
			t.Errorf("%+v", wait.Links)
		}
		ctx, _ := k.span()
		if wait := k.waits(1, k.lockIn(ctx, c.Mutex("a", nil)))[0]; len(wait.Links) > 0 {
			t.Errorf("%+v", wait.Links)
		}
		k.want(1, "interlock.links", resultKey.String("failed"))
	})
}

func TestLinks_AreBoundedInNumberAndTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t, linking)
		ctx, call := k.span()
		l := k.lockIn(ctx, k.holder().Mutex("a", nil))
		k.engine.holdLook = make(chan struct{})
		const calls = mostLooks + 3
		const wait = 2 * lookTime
		time.AfterFunc(lookTime/2, func() { k.engine.holdLook <- struct{}{} })
		time.AfterFunc(wait, func() { _ = l.Unlock(context.WithoutCancel(t.Context())) })
		linked := 0
		for _, span := range k.waits(calls, nil) {
			if len(span.Links) > 0 {
				leads(t, span, call)
				linked++
			}
		}
		if looks := k.engine.looks.Load(); linked != 1 || looks != mostLooks {
			t.Errorf("%d of %d calls are linked, after %d looks", linked, calls, looks)
		}
		k.want(1, "interlock.links", resultKey.String("linked"))
		k.want(mostLooks-1, "interlock.links", resultKey.String("failed"))
		k.want(calls-mostLooks, "interlock.links", resultKey.String("dropped"))
	})
}

// A call never waits for its look, and leaves nothing behind.
func TestLinks_DoNotHoldUpTheCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reader := newKit(t, linking)
		found := newLinks(newMetrics(reader.meters.Meter("test")))
		spans := &traces{tracer: reader.provider.Tracer("test"), links: found}
		c, err := interlock.New(reader.engine, &interlock.Options{Observer: spans.observer()})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		k := *reader
		k.Client = c
		k.engine.holdLook = make(chan struct{})
		ctx, _ := k.span()
		begin := time.Now()
		if wait := k.waits(1, k.lockIn(ctx, k.holder().Mutex("a", nil)))[0]; len(wait.Links) > 0 {
			t.Errorf("%+v", wait.Links)
		}
		if took := time.Since(begin); took > 0 {
			t.Errorf("it took %v", took)
		}
		k.want(1, "interlock.links", resultKey.String("late"))
		found.asked.Range(func(any, any) bool {
			t.Error("a look is kept")
			return true
		})
		if n := len(found.room); n != 0 {
			t.Errorf("%d looks are under way", n)
		}
	})
}

func TestLinks_AreNotLookedFor_IfTheTraceIsNotSampled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t, linking)
		l := k.lock(k.peer().Mutex("a", nil))
		never := sdktrace.NewTracerProvider(sdktrace.WithSampler(sdktrace.NeverSample()))
		ctx, _ := never.Tracer("test").Start(t.Context(), "call")
		ctx, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		if _, err := k.Lock(ctx, "a"); err == nil {
			t.Error("it got the lock")
		}
		if n := k.engine.looks.Load(); n != 0 {
			t.Errorf("%d looks", n)
		}
		k.unlock(l)
	})
}
