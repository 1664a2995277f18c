package promlock_test

import (
	"context"
	"fmt"
	"log"

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
