// Rate keeps a whole fleet at no more than three calls to a partner's service at once:
//
//	go run ./cookbook/rate
//
// A semaphore counts over all hosts. The permits of a host that crashes come back when their leases end.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/interlock-go/interlock/examples/internal/recipe"
)

const (
	limit = 3 // calls at once, all hosts together
	calls = 3 // of each host
)

// partner is the service. It counts the calls that are inside.
type partner struct {
	mu           sync.Mutex // guards the numbers
	inside, most int
	done         int
	full         chan struct{} // closed when limit calls have been inside at once
}

func (p *partner) call(ctx context.Context) error {
	p.enter()
	defer p.leave()
	// The first calls stay inside until the limit is reached, so that the program shows that it can be.
	return recipe.Await(ctx, p.full)
}

func (p *partner) enter() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.inside++
	if p.inside > p.most {
		p.most = p.inside
		if p.most == limit {
			close(p.full)
		}
	}
}

func (p *partner) leave() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.inside--
	p.done++
}

func main() { recipe.Main(run) }

func run(ctx context.Context, url string, out io.Writer) error {
	fleet, err := recipe.Open(ctx, url, "host-1", "host-2", "host-3", "host-4")
	if err != nil {
		return err
	}
	defer fleet.Close()
	p := &partner{full: make(chan struct{})}
	err = fleet.Each(ctx, func(ctx context.Context, h recipe.Host) error {
		permits := h.Locks.Semaphore("partner", limit, nil)
		for range calls {
			lease, err := permits.Acquire(ctx, 1)
			if err != nil {
				return err
			}
			err = p.call(lease.Context(ctx)) // ends when the permit is lost
			if err := errors.Join(err, lease.Unlock(context.WithoutCancel(ctx))); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	if want := calls * len(fleet); p.most != limit || p.done != want {
		return fmt.Errorf("%d calls, %d at once; want %d and %d", p.done, p.most, want, limit)
	}
	fmt.Fprintf(out, "%d calls of %d hosts, at most %d at once\n", p.done, len(fleet), p.most)
	return nil
}
