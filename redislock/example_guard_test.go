package redislock_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/fence"
	"github.com/interlock-go/interlock/redislock"
	"github.com/redis/rueidis"
)

// A key in Redis that refuses a holder that was overtaken: check and write are one step on the server.
func ExampleNewGuard() { //nolint:testableexamples // it needs a server
	ctx := context.Background()
	var client rueidis.Client  // rueidis.NewClient
	var lease *interlock.Lease // locks.Lock
	guard := redislock.NewGuard(client)

	stamp, held := lease.Stamp()
	if !held {
		log.Fatal(lease.Err())
	}
	left, _, err := guard.Get(ctx, "stock:42", stamp) // the first read counts too
	if err == nil && left != "0" {
		err = guard.Set(ctx, "stock:42", "0", stamp)
	}
	if errors.Is(err, fence.ErrStale) {
		fmt.Println("another holder has been here since:", err)
	}
}
