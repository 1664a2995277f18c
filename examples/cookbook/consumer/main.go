// Consumer handles each message once, although the queue delivers some of them several times and to several consumers:
//
//	go run ./cookbook/consumer
//
// The lock keeps two consumers from working on one message at once. What makes the effect happen once is not the lock:
// the message's id is stored in the same step as the effect, as one transaction of a database does.
package main

import (
	"context"
	"fmt"
	"io"
	"sync"
	"sync/atomic"

	"github.com/interlock-go/interlock/examples/internal/recipe"
)

type message struct {
	id     string
	amount int
}

// account stands for two tables of one database: the balance, and the ids of the messages that are in it.
type account struct {
	mu      sync.Mutex // guards the fields; a transaction, in a database
	balance int
	handled map[string]bool
}

// deposit adds the amount unless the message has been handled. It reports whether it did.
func (a *account) deposit(m message) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.handled[m.id] {
		return false // INSERT INTO handled: duplicate key
	}
	a.handled[m.id] = true
	a.balance += m.amount
	return true
}

func main() { recipe.Main(run) }

func run(ctx context.Context, url string, out io.Writer) error {
	fleet, err := recipe.Open(ctx, url, "consumer-1", "consumer-2")
	if err != nil {
		return err
	}
	defer fleet.Close()
	one, two, three := message{"m1", 10}, message{"m2", 20}, message{"m3", 30}
	deliveries := []message{one, two, one, three, two, one} // at least once, in any order
	queue := make(chan message, len(deliveries))
	for _, m := range deliveries {
		queue <- m
	}
	close(queue)

	alice := &account{handled: make(map[string]bool)}
	var handled atomic.Int32
	err = fleet.Each(ctx, func(ctx context.Context, h recipe.Host) error {
		for m := range queue {
			err := h.Locks.Do(ctx, "message:"+m.id, func(context.Context) error {
				// Here is the expensive part, such as a call to another service, which need not be made twice.
				if alice.deposit(m) {
					handled.Add(1)
					fmt.Fprintln(out, m.id, "handled by", h.Name)
				} else {
					fmt.Fprintln(out, m.id, "skipped: it was delivered before")
				}
				return nil
			})
			if err != nil {
				return err // do not acknowledge m: the queue delivers it once more
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	if n := handled.Load(); n != 3 || alice.balance != 60 {
		return fmt.Errorf("%d messages handled, balance %d; want 3 and 60", n, alice.balance)
	}
	fmt.Fprintln(out, "balance:", alice.balance)
	return nil
}
