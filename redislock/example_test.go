package redislock_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/redislock" // also answers to redis:// URLs
	"github.com/redis/rueidis"
)

// The usual way: the URL says where the servers are.
func Example() { //nolint:testableexamples // it needs a server
	ctx := context.Background()
	locks, err := interlock.Open(ctx, "redis://:password@localhost:6379?check=refuse", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()

	err = locks.Do(ctx, "stock:42", func(ctx context.Context) error {
		fmt.Println("nobody else is in here, on no machine")
		return nil
	})
	if errors.Is(err, interlock.ErrLost) {
		fmt.Println("the lock was lost while we worked:", err)
	}
}

// With a client that the program has already. Who makes it says what it does on its way; interlock keeps one connection
// to each server beside those of the client.
func ExampleNew() { //nolint:testableexamples // it needs a server
	client, err := rueidis.NewClient(rueidis.ClientOption{
		InitAddress: []string{"h1:26379", "h2:26379", "h3:26379"},
		Sentinel: rueidis.SentinelOption{
			MasterSet:               "mymaster",
			TopologyRefreshInterval: 5 * time.Second, // finds a primary whose election it has not heard of
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	engine, err := redislock.New(client, &redislock.Options{
		Prefix:   "shop:",
		Replicas: 2, // all that there are: a failover then loses no lock
		Check:    redislock.CheckRefuse,
		Logger:   slog.Default(),
	})
	if err != nil {
		log.Fatal(err)
	}
	defer engine.Close()

	locks, err := interlock.New(engine, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()

	lease, err := locks.TryLock(context.Background(), "nightly")
	var held *interlock.HeldError
	if errors.As(err, &held) {
		fmt.Println("done elsewhere, by", held.Client)
		return
	}
	if err != nil {
		log.Fatal(err)
	}
	defer lease.Unlock(context.Background())
}

// With the options of a client instead of a URL. Close of the engine closes what it has opened.
func ExampleConnect() { //nolint:testableexamples // it needs a server
	ctx := context.Background()
	engine, err := redislock.Connect(ctx, rueidis.ClientOption{
		InitAddress: []string{"localhost:6379"},
		Username:    "app",
		Password:    "secret",
	}, &redislock.Options{Prefix: "shop:"})
	if err != nil {
		log.Fatal(err)
	}
	defer engine.Close()

	locks, err := interlock.New(engine, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()
}

// What interlock doctor prints, for a program's own health page.
func ExampleDriver_Diagnose() { //nolint:testableexamples // it needs a server
	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{"localhost:6379"}})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	engine, err := redislock.New(client, &redislock.Options{Check: redislock.CheckNone})
	if err != nil {
		log.Fatal(err)
	}
	defer engine.Close()
	for _, finding := range engine.Diagnose(context.Background()) { // the worst come first
		if finding.Level != driver.LevelOK {
			fmt.Printf("%s: %s. %s\n", finding.Check, finding.Detail, finding.Advice)
		}
	}
}
