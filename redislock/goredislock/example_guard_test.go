package goredislock_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/fence"
	"github.com/interlock-go/interlock/redislock/goredislock"
	"github.com/redis/go-redis/v9"
)

// The last item is sold once, also by a process that stood still between its read and its write while another got the
// lock: the guard refuses its write.
func ExampleNewGuard() { //nolint:testableexamples // it needs a server
	client := redis.NewClient(&redis.Options{Addr: os.Getenv("REDIS_ADDR")})
	defer client.Close()
	engine, err := goredislock.New(client, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer engine.Close()
	locks, err := interlock.New(engine, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()

	lease, err := locks.Lock(context.Background(), "stock:42")
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = lease.Unlock(context.Background()) }()
	stamp, _ := lease.Stamp()
	guard := goredislock.NewGuard(client)
	left, _, err := guard.Get(context.Background(), "stock:42", stamp) // the first read counts too
	if err == nil && left != "0" {
		err = guard.Set(context.Background(), "stock:42", "0", stamp)
	}
	if errors.Is(err, fence.ErrStale) {
		fmt.Println("another holder has been here since:", err)
	}
}
