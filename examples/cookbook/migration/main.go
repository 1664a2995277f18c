// Migration brings the schema up to date when a service starts, by one of the instances that start together:
//
//	go run ./cookbook/migration
//
// The others wait, find the schema up to date, and go on. The schema checks the stamp with each step, so an instance
// that stood still for too long cannot run a step once more.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/examples/internal/recipe"
	"github.com/interlock-go/interlock/fence"
)

var steps = []string{"create orders", "add column paid", "add index on paid"}

// schema stands for the database. In one, the guard is a fence.SQLGuard, whose check is in the transaction of the step.
type schema struct {
	guard   fence.MemoryGuard
	applied []string
}

// next applies the next step, and reports whether there was one.
func (s *schema) next(stamp fence.Stamp) (step string, err error) {
	err = s.guard.Do("schema", stamp, func() error {
		if n := len(s.applied); n < len(steps) {
			step = steps[n]
			s.applied = append(s.applied, step)
		}
		return nil
	})
	return step, err
}

// migrate returns when the schema is up to date.
func migrate(ctx context.Context, h recipe.Host, s *schema, out io.Writer) (err error) {
	lease, err := h.Locks.Mutex("migration", &interlock.LockOptions{Label: "schema of " + h.Name}).Lock(ctx)
	if err != nil {
		return err // do not start without a schema
	}
	defer func() { err = errors.Join(err, lease.Unlock(context.WithoutCancel(ctx))) }()
	for {
		stamp, held := lease.Stamp()
		if !held {
			return lease.Err() // lost: another instance goes on from the step where the schema is
		}
		step, err := s.next(stamp)
		if err != nil || step == "" {
			return err
		}
		fmt.Fprintf(out, "%s: %s\n", h.Name, step)
	}
}

func main() { recipe.Main(run) }

func run(ctx context.Context, url string, out io.Writer) error {
	fleet, err := recipe.Open(ctx, url, "instance-1", "instance-2", "instance-3")
	if err != nil {
		return err
	}
	defer fleet.Close()
	var s schema
	err = fleet.Each(ctx, func(ctx context.Context, h recipe.Host) error {
		if err := migrate(ctx, h, &s, out); err != nil {
			return err
		}
		fmt.Fprintln(out, h.Name, "serves")
		return nil
	})
	if err != nil {
		return err
	}
	if !slices.Equal(s.applied, steps) {
		return fmt.Errorf("applied %q, want %q", s.applied, steps)
	}
	return nil
}
