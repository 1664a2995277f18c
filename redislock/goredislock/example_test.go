package goredislock_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"strings"
	"testing"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/drivertest/servers"
	"github.com/interlock-go/interlock/redislock"
	"github.com/interlock-go/interlock/redislock/goredislock"
	"github.com/redis/go-redis/v9"
)

// The client is the program's: it is used for other things too, and closed last.
func Example() { //nolint:testableexamples // it needs a server
	client := redis.NewClient(&redis.Options{Addr: os.Getenv("REDIS_ADDR")})
	defer client.Close()

	engine, err := goredislock.New(client, &redislock.Options{Prefix: "shop:"})
	if err != nil {
		log.Fatal(err)
	}
	locks, err := interlock.New(engine, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close() // closes the engine, and leaves the client open

	err = locks.Do(context.Background(), "stock:42", func(ctx context.Context) error {
		left, err := client.Decr(ctx, "stock:42").Result()
		fmt.Println("nobody else is in here, on no machine; left:", left)
		return err
	})
	if errors.Is(err, interlock.ErrLost) {
		fmt.Println("the lock was lost while we worked:", err)
	} else if err != nil {
		log.Fatal(err)
	}
}

func TestExample(t *testing.T) {
	t.Setenv("REDIS_ADDR", servers.Redis(t))
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout := os.Stdout
	os.Stdout = write
	Example()
	os.Stdout = stdout
	_ = write.Close()
	said, err := io.ReadAll(read)
	if err != nil || !strings.HasSuffix(string(said), "left: -1\n") {
		t.Errorf("it prints %q, %v", said, err)
	}
}
