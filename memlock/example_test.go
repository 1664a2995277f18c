package memlock_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/memlock" // also answers to mem:// URLs
)

// A test gives each client of its program an access of its own to one store: they exclude each other as processes do.
func ExampleDriver_Peer() {
	ctx := context.Background()
	engine := memlock.New(nil)
	defer engine.Close()
	peer := engine.Peer()
	defer peer.Close()
	one, err := interlock.New(engine, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer one.Close()
	two, err := interlock.New(peer, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer two.Close()

	lease, err := one.Lock(ctx, "stock:42")
	if err != nil {
		log.Fatal(err)
	}
	_, err = two.TryLock(ctx, "stock:42")
	fmt.Println("held by the other client:", errors.Is(err, interlock.ErrHeld))
	fmt.Println(lease.Unlock(ctx))
	// Output:
	// held by the other client: true
	// <nil>
}
