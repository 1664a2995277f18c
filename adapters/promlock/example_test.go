package promlock_test

import (
	"context"
	"fmt"
	"log"
	"log/slog"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/adapters/promlock"
	_ "github.com/interlock-go/interlock/memlock" // mem://
	"github.com/prometheus/client_golang/prometheus"
)

// Metrics of a client, as a scrape would find them. Programs register them with prometheus.MustRegister and serve them
// by promhttp.Handler.
func ExampleNew() {
	metrics := promlock.New(nil)
	registry := prometheus.NewRegistry()
	registry.MustRegister(metrics)

	ctx := context.Background()
	locks, err := interlock.Open(ctx, "mem://", &interlock.Options{Observer: metrics.Observer()})
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()
	stock := locks.Mutex("stock:42", &interlock.LockOptions{Class: "stock"})
	err = stock.Do(ctx, func(context.Context) error { return nil })
	if err != nil {
		log.Fatal(err)
	}

	families, err := registry.Gather()
	if err != nil {
		log.Fatal(err)
	}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			if h := m.GetHistogram(); h.GetSampleCount() > 0 {
				fmt.Println(family.GetName(), m.GetLabel()[0].GetValue(), h.GetSampleCount())
			}
			if n := m.GetCounter().GetValue(); n > 0 {
				fmt.Println(family.GetName(), m.GetLabel()[0].GetValue(), n)
			}
		}
	}
	// Output:
	// interlock_acquire_duration_seconds stock 1
	// interlock_acquire_total stock 1
	// interlock_hold_duration_seconds stock 1
}

// Metrics beside an Observer of the program's own, and a log.
func ExampleMetrics_Observer() {
	ctx, registry := context.Background(), prometheus.NewRegistry()
	// docs: observers
	metrics := promlock.New(nil)
	registry.MustRegister(metrics)
	audit := &interlock.Observer{
		Released: func(e interlock.Event) { fmt.Println("released", e.Name, "of class", e.Class) },
	}
	locks, err := interlock.Open(ctx, "mem://orders", &interlock.Options{
		Observer: interlock.JoinObservers(metrics.Observer(), audit),
		Logger:   slog.Default(),
	})
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()
	order := locks.Mutex("order:42", &interlock.LockOptions{Class: "order"})
	// docs: end
	err = order.Do(ctx, func(context.Context) error { return nil })
	if err != nil {
		log.Fatal(err)
	}
	// Output:
	// released order:42 of class order
}
