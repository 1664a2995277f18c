package foreign_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/redislock"
	"github.com/interlock-go/interlock/redislock/foreign"
	"github.com/redis/rueidis"
)

// Programs of this version and programs that still use redsync never import at the same time. A client of go-redis
// works as well: see goredislock.New.
func Example() { //nolint:testableexamples // it needs a server
	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{os.Getenv("REDIS_ADDR")}})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	ours, err := redislock.New(client, nil)
	if err != nil {
		log.Fatal(err)
	}
	engine := foreign.New(ours, foreign.Redsync()) // the line that goes when no program uses redsync any more
	defer engine.Close()

	locks, err := interlock.New(engine, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()

	err = locks.Do(context.Background(), "import", func(context.Context) error {
		fmt.Println("nobody else imports")
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
}
