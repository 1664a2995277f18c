package interlock_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"sync"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/memlock"
)

// New takes an engine that the program has made itself. Open does the same with a URL.
func ExampleNew() {
	engine := memlock.New(nil) // or redislock.New, pglock.New and so on
	locks, err := interlock.New(engine, &interlock.Options{Lease: 10 * time.Second})
	if err != nil {
		log.Fatal(err)
	}
	defer engine.Close()
	defer locks.Close() // before the engine: it releases what is still held

	err = locks.Do(context.Background(), "stock:42", func(context.Context) error {
		fmt.Println("inside")
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output: inside
}

// A Mutex keeps its name and options, so that they are written once. Requests are granted first come, first served.
func ExampleMutex() {
	ctx := context.Background()
	queued := make(chan struct{}, 2)
	locks, err := interlock.Open(ctx, "mem://fair", &interlock.Options{Observer: &interlock.Observer{
		Waiting: func(context.Context, interlock.Event) { queued <- struct{}{} },
	}})
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()

	printer := locks.Mutex("printer", &interlock.LockOptions{MaxHold: time.Minute})
	lease, err := printer.Lock(ctx)
	if err != nil {
		log.Fatal(err)
	}
	done := make(chan error, 2)
	for _, page := range []string{"first", "second"} {
		go func() {
			done <- printer.Do(ctx, func(context.Context) error {
				fmt.Println(page)
				return nil
			})
		}()
		<-queued // it waits in the line
	}
	if err := errors.Join(lease.Unlock(ctx), <-done, <-done); err != nil {
		log.Fatal(err)
	}
	// Output:
	// first
	// second
}

// Readers share the lock, and a writer has it alone.
func ExampleRWMutex() {
	ctx := context.Background()
	locks, err := interlock.Open(ctx, "mem://rw", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()
	prices := locks.RWMutex("prices", nil)

	one, err := prices.RLock(ctx)
	if err != nil {
		log.Fatal(err)
	}
	two, err := prices.RLock(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("two readers are inside")
	_, err = prices.TryLock(ctx)
	fmt.Println("a writer has to wait:", errors.Is(err, interlock.ErrHeld))
	if err := errors.Join(one.Unlock(ctx), two.Unlock(ctx)); err != nil {
		log.Fatal(err)
	}
	writer, err := prices.Lock(ctx)
	if err != nil {
		log.Fatal(err)
	}
	_, err = prices.TryRLock(ctx)
	fmt.Println("a reader has to wait:", errors.Is(err, interlock.ErrHeld))
	fmt.Println(writer.Unlock(ctx))
	// Output:
	// two readers are inside
	// a writer has to wait: true
	// a reader has to wait: true
	// <nil>
}

// Code that was written for a sync.Mutex takes a lock of the whole fleet instead. It learns of a loss only by the panic
// of Unlock, so code that can take a context should use Do.
func ExampleMutex_Locker() {
	ctx := context.Background()
	total := 0
	count := func(mu sync.Locker) { // in a package that knows nothing of interlock
		mu.Lock()
		defer mu.Unlock()
		total++
	}

	var both sync.WaitGroup
	for range 2 { // in real life two processes
		locks, err := interlock.Open(ctx, "mem://locker", nil)
		if err != nil {
			log.Fatal(err)
		}
		defer locks.Close()
		mu := locks.Mutex("total", nil).Locker(ctx)
		both.Go(func() {
			for range 50 {
				count(mu)
			}
		})
	}
	both.Wait()
	fmt.Println("total:", total)
	// Output: total: 100
}
