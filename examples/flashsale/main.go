// Flashsale sells a few items to many who come at once, without selling one too many, losing one, or selling one twice,
// also when its processes are killed in the middle. Start it with
//
//	go run ./flashsale
//
// It starts a Redis and a MariaDB of its own (or says what to install), and for -queue=nats a NATS
// server in its own process.
//
//	                gate                          consumer                       sweeper
//	order ──▶ one script in Redis: ──▶ queue ──▶ take the reservation,   reservations whose order
//	          window, repeated request,          book it in ONE          has not come in time are
//	          limit, stock; reserve, and         transaction, confirm,   given back
//	          write to the outbox                acknowledge
//
// A user is told "reserved" at once, and "sold" only when the database has committed. Whatever is repeated changes
// nothing: the user's request is a key everywhere. The default queue is a stream in Redis, which the script that
// reserves writes in the same step, so no crash can come between the two. With NATS there is a gap: an order that
// cannot be sent is given back at once, and one whose gate has died is given back by the sweeper. interlock keeps the
// opening of the sale and the sweeper to one process at a time; the sale itself needs no lock, because each of its
// steps is atomic where it happens.
//
// In the middle of the sale a consumer is killed with -9. At the end, "flashsale verify" compares Redis, the queue and
// the database, in a process of its own, whose exit code is the program's. It can be run by hand while the sale runs:
//
//	flashsale verify -item phone -redis HOST:PORT -mariadb HOST:PORT [-nats URL] [-json]
//
// It ends with 0 if all six invariants hold and nothing is open, with 1 if one is violated, and with 2 if it cannot
// tell: a server does not answer, or orders are under way.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/interlock-go/interlock/examples/internal/command"
	"github.com/interlock-go/interlock/examples/internal/part"
)

func main() {
	part.Play(parts)
	command.Main(run)
}

// run is the program. It returns its exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	if len(args) > 0 && args[0] == "verify" {
		return runVerify(ctx, args[1:], stdout, stderr)
	}
	flags := command.Flags("flashsale", stderr)
	var s settings
	flags.IntVar(&s.stock, "stock", 300, "items that there are")
	flags.IntVar(&s.limit, "limit", 1, "items for each user")
	flags.IntVar(&s.users, "users", 2000, "users who come, some more than once")
	flags.Float64Var(&s.rate, "rate", 500, "orders in a second")
	flags.DurationVar(&s.length, "duration", 4*time.Second, "of the sale")
	flags.IntVar(&s.consumers, "consumers", 2, "processes that book orders")
	flags.StringVar(&s.queue, "queue", "stream", "stream (of Redis) or nats")
	flags.Uint64Var(&s.seed, "seed", 1, "of the crowd")
	if code, ok := command.Parse(flags, args); !ok {
		return code
	}
	if err := s.check(); err != nil {
		fmt.Fprintln(stderr, "flashsale:", err)
		return command.Usage
	}
	return s.onServers(ctx, stdout, stderr)
}

func (s *settings) check() error {
	switch {
	case s.queue != "stream" && s.queue != "nats":
		return fmt.Errorf("the queue %q is neither stream nor nats", s.queue)
	case s.users < 1 || s.rate <= 0 || s.rate > 100_000 || s.length <= 0 || s.consumers < 1 || s.consumers > 64:
		return errors.New("there must be at least 1 user, up to 100000 orders a second, a duration, " +
			"and 1 to 64 consumers")
	}
	return s.sale().check()
}

func runVerify(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	flags := command.Flags("flashsale verify", stderr)
	at := site{Again: again}
	flags.StringVar(&at.Item, "item", item, "what is sold")
	flags.StringVar(&at.Redis, "redis", "", "host:port")
	flags.StringVar(&at.MariaDB, "mariadb", "", "host:port")
	flags.StringVar(&at.NATS, "nats", "", "URL, if NATS is the queue")
	asJSON := flags.Bool("json", false, "print JSON")
	if code, ok := command.Parse(flags, args); !ok {
		return code
	}
	if at.Redis == "" || at.MariaDB == "" {
		fmt.Fprintln(stderr, "flashsale verify: "+
			"-redis and -mariadb must say where the sale is, as in -redis 127.0.0.1:6379")
		return command.Usage
	}
	r, err := verifyAt(ctx, at)
	if err != nil {
		fmt.Fprintln(stderr, "flashsale verify: it cannot be told:", err)
		return verifyUnknown
	}
	if *asJSON {
		if err := json.NewEncoder(stdout).Encode(r); err != nil {
			fmt.Fprintln(stderr, "flashsale verify:", err)
			return verifyUnknown
		}
	} else {
		r.print(stdout)
	}
	return r.exitCode()
}

func verifyAt(ctx context.Context, at site) (*result, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	o, err := at.open(ctx, "verify")
	if err != nil {
		return nil, err
	}
	defer o.close()
	return verify(ctx, o)
}
