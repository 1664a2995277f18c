package interlock_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/interlock-go/interlock"
	_ "github.com/interlock-go/interlock/memlock"
)

func ExampleClient_Multi() {
	ctx := context.Background()
	locks, err := interlock.Open(ctx, "mem://bank", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()

	// Two transfers between the same accounts, in both directions, do not wait for each other: names are sorted.
	transfer := locks.Multi([]string{"account:7", "account:3"}, nil)
	err = transfer.Do(ctx, func(ctx context.Context) error { // cancelled when either of the two is lost
		interlock.AssertHeld(ctx, "account:3")
		interlock.AssertHeld(ctx, "account:7")
		fmt.Println("transferred")
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output: transferred
}

// Locks of two stores are taken together. The clients agree on the order by Options.Store, which Open takes from the
// URL, so two programs that name them the other way round do not deadlock.
func ExampleMultiOf() {
	ctx := context.Background()
	shop, err := interlock.Open(ctx, "mem://shop", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer shop.Close()
	warehouse, err := interlock.Open(ctx, "mem://warehouse", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer warehouse.Close()

	both := interlock.MultiOf(
		shop.Mutex("order:42", &interlock.LockOptions{MaxHold: time.Minute}), // each has options of its own
		warehouse.Mutex("shelf:7", nil),
	)
	held, err := both.Lock(ctx)
	if err != nil {
		log.Fatal(err)
	}
	work := held.Context(ctx) // ends when either of the two is lost
	for _, lease := range held.Leases() {
		fmt.Println(lease.Name(), "may be used:", lease.Err() == nil && work.Err() == nil)
	}
	if err := held.Unlock(ctx); err != nil {
		log.Fatal(err)
	}
	// Output:
	// order:42 may be used: true
	// shelf:7 may be used: true
}
