package interlock_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/interlock-go/interlock"
	_ "github.com/interlock-go/interlock/memlock"
)

// Work only if nobody else does, without a word otherwise.
func ExampleClient_TryDo() {
	ctx := context.Background()
	locks, err := interlock.Open(ctx, "mem://client-trydo", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()

	ran, err := locks.TryDo(ctx, "nightly", func(ctx context.Context) error {
		fmt.Println("cleaning up")
		return nil
	})
	fmt.Println(ran, err)
	// Output:
	// cleaning up
	// true <nil>
}

// Readers work beside each other, and a writer alone.
func ExampleRWMutex_Do() {
	ctx := context.Background()
	locks, err := interlock.Open(ctx, "mem://rw-do", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()
	prices := locks.RWMutex("prices", nil)

	price := 3
	err = prices.Do(ctx, func(context.Context) error { price = 4; return nil })
	if err != nil {
		log.Fatal(err)
	}
	err = prices.RDo(ctx, func(context.Context) error { fmt.Println("the price is", price); return nil })
	fmt.Println(err)
	// Output:
	// the price is 4
	// <nil>
}

// At most eight conversions run at once in the whole fleet. This one counts as two.
func ExampleSemaphore_Do() {
	ctx := context.Background()
	locks, err := interlock.Open(ctx, "mem://semaphore-do", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()

	err = locks.Semaphore("conversions", 8, nil).Do(ctx, 2, func(ctx context.Context) error {
		fmt.Println("converting")
		return nil
	})
	fmt.Println(err)
	// Output:
	// converting
	// <nil>
}

// A lock can have a bound on its waits, so that each call site need not make a context for that.
func ExampleLockOptions_wait() {
	ctx := context.Background()
	locks, err := interlock.Open(ctx, "mem://wait", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()
	report := locks.Mutex("report", &interlock.LockOptions{Wait: 20 * time.Millisecond})

	err = report.Do(ctx, func(context.Context) error {
		err := report.Do(ctx, func(context.Context) error { return nil }) // ctx of outside: another owner
		var held *interlock.HeldError
		fmt.Println("held:", errors.As(err, &held), "waited long enough:", held.Waited >= 20*time.Millisecond)
		fmt.Println("a context's error:", errors.Is(err, context.DeadlineExceeded))
		return nil
	})
	fmt.Println(err)
	// Output:
	// held: true waited long enough: true
	// a context's error: false
	// <nil>
}

// Lead for as long as the process runs: after a loss it campaigns again.
func ExampleElection_Lead() {
	ctx, shutdown := context.WithCancel(context.Background())
	defer shutdown()
	locks, err := interlock.Open(ctx, "mem://lead", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()

	scheduler := locks.Election("scheduler", nil)
	err = scheduler.Lead(ctx, "10.0.0.7:8080", func(ctx context.Context) error {
		leader, err := scheduler.Leader(ctx)
		if err != nil {
			return err
		}
		fmt.Println("leading as", leader.Value)
		shutdown()
		<-ctx.Done() // the end of the term, or of the process
		return nil
	})
	fmt.Println(err)
	// Output:
	// leading as 10.0.0.7:8080
	// <nil>
}
