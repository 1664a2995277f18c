package otellock_test

import (
	"context"
	"fmt"
	"log"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/adapters/otellock"
	_ "github.com/interlock-go/interlock/memlock" // mem://
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
)

// The spans of one lock. Programs set up an SDK and call otellock.New(nil), which takes the global providers.
func ExampleNew() {
	ctx := context.Background()
	exporter := tracetest.NewInMemoryExporter()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(exporter))
	defer func() { _ = provider.Shutdown(ctx) }()

	observer := otellock.New(&otellock.Options{TracerProvider: provider})
	locks, err := interlock.Open(ctx, "mem://", &interlock.Options{Observer: observer})
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()
	err = locks.Do(ctx, "stock:42", func(context.Context) error { return nil })
	if err != nil {
		log.Fatal(err)
	}
	for _, span := range exporter.GetSpans() {
		fmt.Println(span.Name)
	}
	// Output:
	// lock wait
	// lock hold
}

// What others see of a lock that is taken in a trace, and what their waits link to.
func ExampleLabel() {
	ctx := trace.ContextWithSpanContext(context.Background(), trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: trace.TraceID{0x4b, 0xf9}, SpanID: trace.SpanID{0xf0, 0x67}, TraceFlags: trace.FlagsSampled,
	}))
	// docs: links
	locks, err := interlock.Open(ctx, "mem://orders", &interlock.Options{
		Observer:  otellock.New(&otellock.Options{LinkHolders: true}), // waits here link to holders
		LabelFrom: otellock.Label,                                     // waits elsewhere can link to holders here
	})
	// docs: end
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()
	order := locks.Mutex("order:42", &interlock.LockOptions{Label: "refund"})
	err = order.Do(ctx, func(ctx context.Context) error {
		info, err := locks.Look(ctx, interlock.KindMutex, "order:42")
		fmt.Println(info.Holders[0].Label)
		return err
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output:
	// refund traceparent=00-4bf90000000000000000000000000000-f067000000000000-01
}
