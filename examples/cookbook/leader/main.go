// Leader has one node of two do the work. When it loses the leadership the other one takes over:
//
//	go run ./cookbook/leader
//
// The term's token grows. What the leader writes to checks it, so a former leader that wakes up late is refused.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/examples/internal/recipe"
	"github.com/interlock-go/interlock/fence"
)

// plan is what the leader writes: who works on what.
type plan struct {
	guard  fence.MemoryGuard
	author string
}

func (p *plan) write(stamp fence.Stamp, author string) error {
	return p.guard.Do("plan", stamp, func() error { p.author = author; return nil })
}

func main() { recipe.Main(run) }

func run(ctx context.Context, url string, out io.Writer) error {
	fleet, err := recipe.Open(ctx, url, "node-1", "node-2")
	if err != nil {
		return err
	}
	defer fleet.Close()
	var p plan
	leads, tookOver := make(chan struct{}), make(chan struct{})
	return fleet.Each(ctx, func(ctx context.Context, h recipe.Host) error {
		if h.Name == "node-1" {
			return first(ctx, h, &p, leads, tookOver, out)
		}
		if err := recipe.Await(ctx, leads); err != nil {
			return err
		}
		return second(ctx, h, &p, tookOver, out)
	})
}

// first leads, stands still until its term is over, and goes on as if nothing had happened.
func first(
	ctx context.Context, h recipe.Host, p *plan, leads chan<- struct{}, tookOver <-chan struct{}, out io.Writer,
) error {
	// MaxHold ends the term here. In production a crash, a pause or a cut network does; leave MaxHold out.
	election := h.Locks.Election("planner", &interlock.LockOptions{MaxHold: time.Second})
	term, err := election.Campaign(ctx, h.Name)
	if err != nil {
		return err
	}
	stamp, _ := term.Stamp()
	if err := p.write(stamp, h.Name); err != nil {
		return err
	}
	fmt.Fprintln(out, h.Name, "leads")
	close(leads)

	// A well-behaved leader works with term.Context(ctx), and stops here.
	if err := errors.Join(recipe.Await(ctx, term.Lost()), recipe.Await(ctx, tookOver)); err != nil {
		return err
	}
	if err := p.write(stamp, h.Name); !errors.Is(err, fence.ErrStale) {
		return fmt.Errorf("the late write of a former leader: %s; it should be refused", fmt.Sprint(err))
	}
	fmt.Fprintln(out, h.Name, "is refused: its term is over")
	return nil
}

// second waits until it leads.
func second(ctx context.Context, h recipe.Host, p *plan, tookOver chan<- struct{}, out io.Writer) error {
	term, err := h.Locks.Election("planner", nil).Campaign(ctx, h.Name)
	if err != nil {
		return err
	}
	stamp, _ := term.Stamp()
	if err := p.write(stamp, h.Name); err != nil {
		return err
	}
	fmt.Fprintln(out, h.Name, "takes over")
	close(tookOver)
	return term.Unlock(ctx) // resigns
}
