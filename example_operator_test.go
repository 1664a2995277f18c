package interlock_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/interlock-go/interlock"
)

// An operator ends a hold that is stuck: look first, then break the hold with the token that was shown. If another
// owner has got the lock meanwhile, Break leaves it alone.
func ExampleClient_Break() {
	ctx := context.Background()
	worker, err := interlock.Open(ctx, "mem://break", &interlock.Options{ClientName: "worker-3"})
	if err != nil {
		log.Fatal(err)
	}
	defer worker.Close()
	operator, err := interlock.Open(ctx, "mem://break", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer operator.Close()
	stuck, err := worker.Lock(ctx, "import")
	if err != nil {
		log.Fatal(err)
	}

	info, err := operator.Look(ctx, interlock.KindMutex, "import")
	if err != nil {
		log.Fatal(err)
	}
	holder := info.Holders[0] // of a mutex that is held there is one
	fmt.Println("held by", holder.Client)
	if err := operator.Break(ctx, interlock.KindMutex, "import", holder.Token); err != nil {
		log.Fatal(err)
	}

	<-stuck.Lost() // the worker is told
	var lost *interlock.LostError
	if errors.As(stuck.Err(), &lost) {
		fmt.Println("lost:", lost.Reason)
	}
	err = operator.Break(ctx, interlock.KindMutex, "import", holder.Token)
	fmt.Println("a second time:", errors.Is(err, interlock.ErrNotHeld))
	// Output:
	// held by worker-3
	// lost: broken
	// a second time: true
}

// A program that does not campaign follows the leader, for instance to send its requests there.
func ExampleElection_Observe() {
	ctx := context.Background()
	locks, err := interlock.Open(ctx, "mem://observe", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()
	election := locks.Election("scheduler", nil)
	campaign := func(address string) *interlock.Lease { // in real life each in a process of its own
		term, err := election.Campaign(ctx, address)
		if err != nil {
			log.Fatal(err)
		}
		return term
	}

	term := campaign("host-1:8080")
	for leader, err := range election.Observe(ctx) {
		switch {
		case errors.Is(err, interlock.ErrUnavailable):
			fmt.Println("the leader is unknown") // the sequence goes on
			continue
		case err != nil:
			log.Fatal(err) // the last pair
		}
		fmt.Println("leader:", leader.Value)
		if leader.Value == "host-2:8080" {
			break
		}
		if leader.Value == "host-1:8080" {
			if err := term.Unlock(ctx); err != nil {
				log.Fatal(err)
			}
			term = campaign("host-2:8080")
		}
	}
	fmt.Println(term.Unlock(ctx))
	// Output:
	// leader: host-1:8080
	// leader: host-2:8080
	// <nil>
}
