package faulty_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/drivertest/faulty"
	"github.com/interlock-go/interlock/memlock"
)

// The first request for a lock reaches the engine, and its reply is lost.
func ExampleWrap() {
	ctx := context.Background()
	engine, _ := faulty.Wrap(memlock.New(nil), 1, faulty.Rule{Op: faulty.Acquire, Count: 1, Drop: faulty.Reply})
	defer engine.Close()
	locks, err := interlock.New(engine, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()

	_, err = locks.TryLock(ctx, "stock:42")
	fmt.Println("outcome unknown:", errors.Is(err, interlock.ErrUnavailable))
	lease, err := locks.Lock(ctx, "stock:42") // what the first request took is given back
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("unlocked:", lease.Unlock(ctx) == nil)
	// Output:
	// outcome unknown: true
	// unlocked: true
}
