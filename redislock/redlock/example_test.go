package redlock_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/redislock/redlock" // also answers to redlock:// URLs
	"github.com/redis/rueidis"
)

// The usual way: the URL says where the servers are.
func Example() { //nolint:testableexamples // it needs servers
	ctx := context.Background()
	locks, err := interlock.Open(ctx, "redlock://:password@h1,h2,h3,h4,h5?longest-lease=1m", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()

	err = locks.Do(ctx, "stock:42", func(ctx context.Context) error {
		fmt.Println("nobody else is in here, as three of five servers know")
		return nil
	})
	if err != nil {
		log.Print(err)
	}
}

// With clients that the program has already, for servers that do not have the same password.
func ExampleNew() { //nolint:testableexamples // it needs servers
	var nodes []rueidis.Client
	for host, password := range map[string]string{"h1:6379": "one", "h2:6379": "two", "h3:6379": "three"} {
		client, err := rueidis.NewClient(
			rueidis.ClientOption{InitAddress: []string{host}, Password: password, ForceSingleClient: true})
		if err != nil {
			log.Fatal(err)
		}
		defer client.Close()
		nodes = append(nodes, client)
	}
	engine, err := redlock.New(nodes, &redlock.Options{LongestLease: 30 * time.Second})
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
