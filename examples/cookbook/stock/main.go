// Stock sells ten items in four shops at once, and never an eleventh, although one shop stands still for longer than
// its lease lasts:
//
//	go run ./cookbook/stock
//
// The lock keeps the shops apart while they read and write. The fence refuses the shop that wakes up too late.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/examples/internal/recipe"
	"github.com/interlock-go/interlock/fence"
)

const items = 10

// shelf stands for a row in a database. There the guard is a fence.SQLGuard, in the transaction of the write.
type shelf struct {
	guard fence.MemoryGuard
	left  int // guarded by guard
}

func (s *shelf) read(stamp fence.Stamp) (left int, err error) {
	err = s.guard.Do("stock:42", stamp, func() error { left = s.left; return nil })
	return left, err
}

func (s *shelf) write(stamp fence.Stamp, left int) error {
	return s.guard.Do("stock:42", stamp, func() error { s.left = left; return nil })
}

// sell sells one item, or reports that none is left. pause is what happens between the look and the sale.
func sell(
	ctx context.Context, lock *interlock.Mutex, s *shelf, pause func(*interlock.Lease) error,
) (sold bool, err error) {
	lease, err := lock.Lock(ctx)
	if err != nil {
		return false, err
	}
	defer func() {
		unlocked := lease.Unlock(context.WithoutCancel(ctx))
		if !sold { // what the shelf has accepted is sold, also if the lease was lost right after
			err = errors.Join(err, unlocked)
		}
	}()
	stamp, held := lease.Stamp()
	if !held {
		return false, lease.Err()
	}
	left, err := s.read(stamp)
	if err != nil || left == 0 {
		return false, err
	}
	if err := pause(lease); err != nil {
		return false, err
	}
	err = s.write(stamp, left-1)
	return err == nil, err
}

func main() { recipe.Main(run) }

func run(ctx context.Context, url string, out io.Writer) error {
	fleet, err := recipe.Open(ctx, url, "late", "shop-1", "shop-2", "shop-3")
	if err != nil {
		return err
	}
	defer fleet.Close()
	s := &shelf{left: items}
	var sold atomic.Int32
	looked, soldOut := make(chan struct{}), make(chan struct{})
	// The shop that stands still: it sees ten items, and goes on when all are sold. MaxHold stands for the pause.
	stalled := &interlock.LockOptions{MaxHold: time.Second}
	late := func(lease *interlock.Lease) error {
		close(looked)
		return errors.Join(recipe.Await(ctx, lease.Lost()), recipe.Await(ctx, soldOut))
	}
	result := make(chan error, 1)
	go func() { // ends when the others have sold everything, or with ctx
		_, err := sell(ctx, fleet[0].Locks.Mutex("stock:42", stalled), s, late)
		result <- err
	}()
	select {
	case <-looked:
	case err := <-result: // the engine failed, or ctx has ended
		return err
	}
	err = fleet[1:].Each(ctx, func(ctx context.Context, h recipe.Host) error {
		for {
			ok, err := sell(ctx, h.Locks.Mutex("stock:42", nil), s, func(*interlock.Lease) error { return nil })
			if err != nil || !ok {
				return err
			}
			sold.Add(1)
		}
	})
	close(soldOut)
	if late := <-result; !errors.Is(late, fence.ErrStale) {
		return errors.Join(err, fmt.Errorf("the late shop: %s; it should be refused", fmt.Sprint(late)))
	}
	fmt.Fprintf(out, "late is refused\nsold %d of %d\n", sold.Load(), items)
	if err == nil && sold.Load() != items {
		err = errors.New("sold another number than there was")
	}
	return err
}
