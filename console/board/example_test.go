package board_test

import (
	"context"
	"fmt"
	"log"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/console/board"
	_ "github.com/interlock-go/interlock/memlock" // answers to mem:// URLs
)

// One look at what an engine's locks are doing.
func ExampleTake() {
	ctx := context.Background()
	locks, err := interlock.Open(ctx, "mem://take", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()
	lease, err := locks.Lock(ctx, "stock:42")
	if err != nil {
		log.Fatal(err)
	}
	defer lease.Unlock(ctx)

	b := board.Take(ctx, locks, nil)
	if b.Err != nil {
		log.Fatal(b.Err)
	}
	fmt.Println("held:", b.Counts.Held, "waiting:", b.Counts.Waiting)
	for _, lock := range b.Locks {
		fmt.Println(lock.Kind, lock.Name, len(lock.Holders))
	}
	// Output:
	// held: 1 waiting: 0
	// mutex stock:42 1
}
