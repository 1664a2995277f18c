package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/adapters/otellock"
	"go.opentelemetry.io/otel/attribute"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
)

// tracing makes spans and keeps them. A program would export them to where its other spans go.
type tracing struct {
	provider trace.TracerProvider
	spans    *tracetest.InMemoryExporter // nil if there are none
	close    func()
}

func newTracing(on bool) *tracing {
	if !on {
		return &tracing{provider: noop.NewTracerProvider(), close: func() {}}
	}
	spans := tracetest.NewInMemoryExporter()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans))
	return &tracing{provider: provider, spans: spans, close: func() { _ = provider.Shutdown(context.Background()) }}
}

// observer is what makes the spans of locks.
func (t *tracing) observer() *interlock.Observer {
	return otellock.New(&otellock.Options{TracerProvider: t.provider})
}

func (t *tracing) start(ctx context.Context, name string) (context.Context, trace.Span) {
	return t.provider.Tracer("examples/observed").Start(ctx, name)
}

// print writes the spans of the trace that has a span of that name, as a tree.
func (t *tracing) print(w io.Writer, root string) {
	if t.spans == nil {
		return
	}
	all := t.spans.GetSpans()
	i := slices.IndexFunc(all, func(s tracetest.SpanStub) bool { return s.Name == root })
	if i < 0 {
		return
	}
	fmt.Fprintf(w, "\n%s, %v\n", root, spanTime(all[i]))
	printBelow(w, all, all[i], "")
}

// printBelow writes what the span at the top has below it, in the order in which it began.
func printBelow(w io.Writer, all tracetest.SpanStubs, top tracetest.SpanStub, indent string) {
	below := slices.DeleteFunc(slices.Clone(all), func(s tracetest.SpanStub) bool {
		return s.Parent.SpanID() != top.SpanContext.SpanID()
	})
	slices.SortStableFunc(below, func(a, b tracetest.SpanStub) int { return a.StartTime.Compare(b.StartTime) })
	for i, s := range below {
		branch, next := "├─ ", "│  "
		if i == len(below)-1 {
			branch, next = "└─ ", "   "
		}
		fmt.Fprintf(w, "%s%s%-9s  from %-8v  for %-8v  %s\n", indent, branch, s.Name,
			rounded(s.StartTime.Sub(top.StartTime)), spanTime(s), details(s.Attributes))
		printBelow(w, all, s, indent+next)
	}
}

// details are those attributes that say something here.
func details(all []attribute.KeyValue) string {
	var words []string
	for _, a := range all {
		switch a.Key {
		case "interlock.name", "interlock.token", "interlock.result", "interlock.queued":
			words = append(words, strings.TrimPrefix(string(a.Key), "interlock.")+"="+a.Value.Emit())
		}
	}
	return strings.Join(words, " ")
}

func spanTime(s tracetest.SpanStub) time.Duration { return rounded(s.EndTime.Sub(s.StartTime)) }

func rounded(d time.Duration) time.Duration {
	if d >= time.Second {
		return d.Round(10 * time.Millisecond)
	}
	return d.Round(10 * time.Microsecond)
}
