package etcdlock_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/etcdlock" // also answers to etcd:// URLs
	clientv3 "go.etcd.io/etcd/client/v3"
)

// The usual way: the URL says where the members are.
func Example() { //nolint:testableexamples // it needs a server
	ctx := context.Background()
	locks, err := interlock.Open(ctx, "etcd://etcd1,etcd2,etcd3", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()

	err = locks.Do(ctx, "stock:42", func(context.Context) error {
		fmt.Println("nobody else is in here, on no machine")
		return nil
	})
	switch {
	case errors.Is(err, interlock.ErrLost):
		fmt.Println("the lock was lost while we worked:", err)
	case err != nil:
		fmt.Println("failed:", err)
	}
}

// With a client that the program has already. Close of the engine leaves it open.
func ExampleNew() { //nolint:testableexamples // it needs a server
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{"etcd1:2379", "etcd2:2379", "etcd3:2379"}})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	engine, err := etcdlock.New(context.Background(), client, &etcdlock.Options{
		Prefix:  "app/locks/",
		Session: 15 * time.Second,
		Logger:  slog.Default(),
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
