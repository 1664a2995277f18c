package interlock_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/interlock-go/interlock"
)

// One of many instances leads; the others take over when it ends.
func ExampleElection() {
	ctx := context.Background()
	locks, err := interlock.Open(ctx, "mem://election", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()

	election := locks.Election("scheduler", nil)
	term, err := election.Campaign(ctx, "host-1:8080") // waits until it leads
	if err != nil {
		log.Fatal(err)
	}
	work := term.Context(ctx) // ends when the leadership is lost
	for leader, err := range election.Observe(work) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println("the leader is", leader.Value)
		break
	}
	fmt.Println("resigned:", term.Unlock(ctx) == nil)
	_, err = election.Leader(ctx)
	fmt.Println(errors.Is(err, interlock.ErrNoLeader))
	// Output:
	// the leader is host-1:8080
	// resigned: true
	// true
}

// Wait until all parts of a system are ready.
func ExampleLatch() {
	ctx := context.Background()
	locks, err := interlock.Open(ctx, "mem://latch", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()

	ready := locks.Latch("ready")
	if _, err := ready.Set(ctx, 3); err != nil { // false if another has set it: that is fine here
		log.Fatal(err)
	}
	for range 3 {
		go ready.CountDown(ctx) // in real life each in a process of its own, which looks at the error
	}
	fmt.Println("all ready:", ready.Wait(ctx) == nil)
	// Output: all ready: true
}

// Wait until another process has changed something under the same lock.
func ExampleCond() {
	ctx := context.Background()
	locks, err := interlock.Open(ctx, "mem://cond", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()

	mutex := locks.Mutex("mailbox", nil)
	cond := locks.Cond(mutex)
	mail := 0
	lease, err := mutex.Lock(ctx)
	if err != nil {
		log.Fatal(err)
	}
	go mutex.Do(ctx, func(ctx context.Context) error { // gets in when Wait gives the lock up
		mail++
		return cond.Signal(ctx)
	})
	for mail == 0 {
		if lease, err = cond.Wait(ctx, lease); err != nil {
			log.Fatal(err)
		}
	}
	fmt.Println("mail:", mail, "unlocked:", lease.Unlock(ctx) == nil)
	// Output: mail: 1 unlocked: true
}

// A request takes the lock, and a worker in another process goes on with it. Here both are in one process.
func ExampleClient_Adopt() {
	ctx := context.Background()
	web, err := interlock.Open(ctx, "mem://travel", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer web.Close()
	worker, err := interlock.Open(ctx, "mem://travel", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer worker.Close()

	given, err := web.Lock(ctx, "order:42")
	if err != nil {
		log.Fatal(err)
	}
	handle, err := given.Handle() // a secret, which goes with the job
	if err != nil {
		log.Fatal(err)
	}

	lease, err := worker.Adopt(ctx, handle) // renewed by the worker from now on
	if err != nil {
		log.Fatal(err)
	}
	<-given.Lost() // the request's lease has ended, and nothing was lost
	fmt.Println(errors.Is(given.Err(), interlock.ErrAdopted), lease.Token() > given.Token())
	if err := lease.Unlock(ctx); err != nil {
		log.Fatal(err)
	}
	// Output: true true
}

// The limit of a semaphore is changed while it is in use.
func ExampleSemaphore_Resize() {
	ctx := context.Background()
	locks, err := interlock.Open(ctx, "mem://resize", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()

	slots := locks.Semaphore("exports", 1, nil)
	first, err := slots.Acquire(ctx, 1)
	if err != nil {
		log.Fatal(err)
	}
	_, err = slots.TryAcquire(ctx, 1)
	fmt.Println("with a limit of one:", errors.Is(err, interlock.ErrHeld))
	if err := slots.Resize(ctx, 2); err != nil {
		log.Fatal(err)
	}
	second, err := slots.TryAcquire(ctx, 1)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("with a limit of two: granted")
	if err := errors.Join(first.Unlock(ctx), second.Unlock(ctx)); err != nil {
		log.Fatal(err)
	}
	// Output:
	// with a limit of one: true
	// with a limit of two: granted
}
