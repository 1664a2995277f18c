package goredislock_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/internal/servers"
	"github.com/interlock-go/interlock/redislock"
	"github.com/interlock-go/interlock/redislock/goredislock"
	"github.com/redis/go-redis/v9"
)

// The client is the program's: it is used for other things too, and closed last. The engine is the
// program's as well, because interlock.New closes only what Open has opened. Deferred calls run in the
// reverse order, which is the right one.
func Example() { //nolint:testableexamples // it needs a server
	client := redis.NewClient(&redis.Options{Addr: os.Getenv("REDIS_ADDR")})
	defer client.Close()

	engine, err := goredislock.New(client, &redislock.Options{Prefix: "shop:"})
	if err != nil {
		log.Fatal(err)
	}
	defer engine.Close() // leaves the client open

	locks, err := interlock.New(engine, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close() // leaves the engine open

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

func TestExample_LeavesNoGoroutine(t *testing.T) {
	t.Setenv("REDIS_ADDR", servers.Redis(t))
	before := goroutines()
	stdout := os.Stdout
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	os.Stdout = null
	for range 3 {
		Example()
	}
	os.Stdout = stdout
	var left []string
	for range 2000 { // what was closed ends soon, and by itself
		left = slices.DeleteFunc(goroutines(), func(g string) bool { return slices.Contains(before, g) })
		if len(left) == 0 {
			return
		}
		<-time.After(5 * time.Millisecond)
	}
	t.Errorf("%d goroutines are left:\n%s", len(left), strings.Join(left, "\n"))
}

// goroutines returns the goroutines that have to do with Redis, by "goroutine N" and what each runs.
func goroutines() []string {
	buf := make([]byte, 4<<20)
	var all []string
	for stack := range strings.SplitSeq(string(buf[:runtime.Stack(buf, true)]), "\n\n") {
		theirs := strings.Contains(stack, "interlock") || strings.Contains(stack, "redis/go-redis")
		// go-redis keeps the time in a goroutine that never ends, one for the program.
		if theirs && !strings.Contains(stack, "testing.tRunner") && !strings.Contains(stack, "pool.init.") &&
			!strings.Contains(stack, "internal/servers") {
			id, _, _ := strings.Cut(stack, " [")
			_, runs, _ := strings.Cut(stack, "\n")
			runs, _, _ = strings.Cut(runs, "(")
			all = append(all, id+" "+runs)
		}
	}
	return all
}
