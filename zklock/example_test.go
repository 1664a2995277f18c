package zklock_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/zklock" // also answers to zk:// URLs
)

// The usual way: the URL says where the servers are.
func Example() { //nolint:testableexamples // it needs a server
	ctx := context.Background()
	locks, err := interlock.Open(ctx, "zk://zk1,zk2,zk3/app", &interlock.Options{Lease: 15 * time.Second})
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

// Without a URL.
func ExampleNew() { //nolint:testableexamples // it needs a server
	engine, err := zklock.New(context.Background(), []string{"zk1:2181", "zk2:2181", "zk3:2181"}, &zklock.Options{
		Timeout: 15 * time.Second,
		Root:    "/app",
		User:    "app", Password: "secret",
		Logger: slog.Default(),
	})
	if err != nil {
		log.Fatal(err)
	}
	defer engine.Close()

	locks, err := interlock.New(engine, &interlock.Options{Lease: 15 * time.Second})
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()
}
