package run

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/enginekit"
)

// firstInLine finds a process that stands first in the line for a lock, and the lock's name. It returns nil if
// there is none for that long.
func (n *nemesis) firstInLine(ctx context.Context, patience time.Duration) (*process, string) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	locks, err := interlock.Open(ctx, n.engine.Direct(), &interlock.Options{Lease: n.lease, ClientName: "nemesis"})
	if err != nil {
		return nil, "" // the engine has not recovered from the last fault
	}
	defer func() { _ = locks.Close() }()
	for ctx.Err() == nil {
		if who, name := n.anyFirst(ctx, locks); who != nil {
			return who, name
		}
		enginekit.Pause(ctx, 20*time.Millisecond)
	}
	return nil, ""
}

// anyFirst looks once, and draws one of those that are first now.
func (n *nemesis) anyFirst(ctx context.Context, locks *interlock.Client) (who *process, of string) {
	seen := 0
	for info, err := range locks.List(ctx, "") {
		if err != nil || ctx.Err() != nil {
			return nil, ""
		}
		if first := n.firstOf(&info); first != nil {
			if seen++; rand.IntN(seen) == 0 { // not the seed's dice: who waits is not for the seed to say
				who, of = first, info.Name
			}
		}
	}
	return who, of
}

// firstOf is who is first in line for a mutex and lives: the dead keep their places for a while.
func (n *nemesis) firstOf(info *interlock.LockInfo) *process {
	if info.Kind != driver.KindMutex {
		return nil
	}
	for _, w := range info.Waiters {
		for _, p := range n.crew {
			if p.job.ClientName() == w.Client && p.isOf(w.Since) {
				return p
			}
		}
	}
	return nil
}
