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
