package interlock_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/interlock-go/interlock"
)

// A loop that has no context to watch asks the lease. Here MaxHold ends the hold, as a loss.
func ExampleLease_Lost() {
	ctx := context.Background()
	locks, err := interlock.Open(ctx, "mem://lost", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()

	report := locks.Mutex("report", &interlock.LockOptions{MaxHold: 20 * time.Millisecond})
	lease, err := report.Lock(ctx)
	if err != nil {
		log.Fatal(err)
	}
	select {
	case <-lease.Lost(): // stop: another owner may be inside
	case <-time.After(time.Minute): // in real life the work
	}
	var lost *interlock.LostError
	if errors.As(lease.Err(), &lost) {
		fmt.Println(lost.Name, "is lost:", lost.Reason)
	}
	fmt.Println("Unlock says so too:", errors.Is(lease.Unlock(ctx), interlock.ErrLost))
	// Output:
	// report is lost: expired
	// Unlock says so too: true
}

// A long job gives way when another process wants the lock. Here a second client plays the other process.
func ExampleLease_Wanted() {
	ctx := context.Background()
	batch, err := interlock.Open(ctx, "mem://wanted", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer batch.Close()
	web, err := interlock.Open(ctx, "mem://wanted", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer web.Close()

	// With Retain the engine tells the holder at once, and not with the next renewal.
	index := batch.Mutex("index", &interlock.LockOptions{Retain: time.Second})
	lease, err := index.Lock(ctx)
	if err != nil {
		log.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		done <- web.Do(ctx, "index", func(context.Context) error {
			fmt.Println("the other one is inside")
			return nil
		})
	}()
	<-lease.Wanted() // a real job looks between two pieces of work
	fmt.Println("give way")
	fmt.Println(errors.Join(lease.Unlock(ctx), <-done))
	// Output:
	// give way
	// the other one is inside
	// <nil>
}

// Retain is for a lock that one process takes again and again: it keeps the lock after an Unlock, and takes it again
// without a message to the engine. It gives the lock back when another process asks. Here a second client plays it.
func ExampleLockOptions_retain() {
	ctx := context.Background()
	writer, err := interlock.Open(ctx, "mem://retain", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer writer.Close()
	auditor, err := interlock.Open(ctx, "mem://retain", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer auditor.Close()

	entries := 0
	ledger := writer.Mutex("ledger", &interlock.LockOptions{Retain: time.Minute})
	for range 100 {
		if err := ledger.Do(ctx, func(context.Context) error { entries++; return nil }); err != nil {
			log.Fatal(err)
		}
	}
	err = auditor.Do(ctx, "ledger", func(context.Context) error { // does not wait for a minute
		fmt.Println("entries:", entries)
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output: entries: 100
}

// A candidate campaigns again whenever a term has ended, until the program stops.
func ExampleElection_Campaign() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	locks, err := interlock.Open(ctx, "mem://campaign", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()

	terms := 0
	lead := func(work context.Context) { // returns when work ends, or when it resigns
		terms++
		fmt.Println("term", terms)
		if terms == 2 {
			stop()
			<-work.Done()
		}
	}
	election := locks.Election("scheduler", nil)
	for ctx.Err() == nil {
		term, err := election.Campaign(ctx, "host-1:8080")
		if err != nil {
			log.Print(err) // a real candidate pauses before it tries again
			continue
		}
		lead(term.Context(ctx))
		if err := term.Unlock(context.WithoutCancel(ctx)); err != nil { // resigns, also when ctx has ended
			log.Print(err) // the leadership was lost before
		}
	}
	// Output:
	// term 1
	// term 2
}

// The functions of an Observer feed metrics. Each Acquired has one Released or Lost.
func ExampleObserver() {
	ctx := context.Background()
	locks, err := interlock.Open(ctx, "mem://observer", &interlock.Options{Observer: &interlock.Observer{
		Acquired: func(_ context.Context, e interlock.Event) { fmt.Println("acquired:", e.Class) },
		Failed:   func(_ context.Context, e interlock.Event) { fmt.Println("failed:", e.Class, e.Result()) },
		Lost:     func(e interlock.Event) { fmt.Println("lost:", e.Class, e.Reason) },
		Released: func(e interlock.Event) { fmt.Println("released:", e.Class) },
	}})
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()

	order := locks.Mutex("order:42", &interlock.LockOptions{Class: "order:{id}"}) // names are no labels of metrics
	err = order.Do(ctx, func(context.Context) error {
		_, err := order.TryLock(context.Background()) // another owner
		fmt.Println("refused:", errors.Is(err, interlock.ErrHeld))
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output:
	// acquired: order:{id}
	// failed: order:{id} held
	// refused: true
	// released: order:{id}
}

// A lease without renewal ends by itself if the worker hangs. A worker that gets on extends it before each step.
func ExampleLease_Extend() {
	ctx := context.Background()
	locks, err := interlock.Open(ctx, "mem://extend", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()

	backup := locks.Mutex("backup", &interlock.LockOptions{
		Lease: time.Minute, NoRenew: true, MaxHold: time.Hour,
	})
	lease, err := backup.Lock(ctx)
	if err != nil {
		log.Fatal(err)
	}
	if err := lease.Extend(ctx, 10*time.Minute); err != nil { // the next step takes up to ten minutes
		log.Fatal(err)
	}
	fmt.Println("time for the step:", time.Until(lease.Deadline()) > 9*time.Minute)
	fmt.Println("beyond MaxHold:", lease.Extend(ctx, 2*time.Hour) != nil, "still held:", lease.Err() == nil)
	if err := lease.Unlock(ctx); err != nil {
		log.Fatal(err)
	}
	// Output:
	// time for the step: true
	// beyond MaxHold: true still held: true
}
