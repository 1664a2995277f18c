package fence_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/fence"
)

// shelf is the resource: the only item that is left. Without a guard it does what it is told.
type shelf struct {
	left, sold int
	guard      *fence.MemoryGuard
}

// touch runs one access to the shelf: with a guard, only for a holder that was not overtaken.
func (s *shelf) touch(stamp fence.Stamp, access func() error) error {
	if s.guard == nil {
		return access()
	}
	return s.guard.Do("stock:42", stamp, access)
}

// sellTwice lets two programs sell the only item. The first one stands still between its look and its sale.
func sellTwice(ctx context.Context, first, second *interlock.Client, item *shelf) {
	// The lease is short, and not renewed, as that of a program whose machine is suspended.
	stalled := &interlock.LockOptions{Lease: 50 * time.Millisecond, NoRenew: true}

	// docs: last item
	slow, err := first.Mutex("stock:42", stalled).Lock(ctx)
	if err != nil {
		log.Fatal(err)
	}
	old, _ := slow.Stamp()
	seen := 0
	item.touch(old, func() error { seen = item.left; return nil })
	<-slow.Lost() // the program stands still, and its lease ends

	quick, err := second.Lock(ctx, "stock:42") // another program
	if err != nil {
		log.Fatal(err)
	}
	defer quick.Unlock(ctx)
	newer, _ := quick.Stamp()
	item.touch(newer, func() error { item.left--; item.sold++; return nil })

	// The first program wakes up. It had seen one item.
	err = item.touch(old, func() error { item.left = seen - 1; item.sold++; return nil })
	fmt.Println("sold:", item.sold, "- refused:", err != nil)
	// docs: end
}

// The last item is sold twice under a lock alone, and once with a fence.
func Example_lastItem() {
	ctx := context.Background()
	for _, item := range []*shelf{{left: 1}, {left: 1, guard: new(fence.MemoryGuard)}} {
		first, err := interlock.Open(ctx, "mem://last-item", nil)
		if err != nil {
			log.Fatal(err)
		}
		second, err := interlock.Open(ctx, "mem://last-item", nil)
		if err != nil {
			log.Fatal(err)
		}
		sellTwice(ctx, first, second, item)
		second.Close()
		first.Close()
	}
	// Output:
	// sold: 2 - refused: false
	// sold: 1 - refused: true
}
