package workload

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/interlock-go/interlock/bench/peer"
)

const (
	// opening is how many clients a process opens at a time.
	opening = 16

	// warmUps is how often each has a lock before it counts: rueidis spreads its calls at random over connections that
	// it makes at their first use.
	warmUps = 8
)

// member is a client of the herd and its worker.
type member struct {
	peer.Peer
	peer.Worker
}

// openHerd opens the clients. Each takes and releases a lock that it has for itself until its connections are made.
func openHerd(ctx context.Context, spec *peer.Spec, j *Job) ([]member, error) {
	if j.Shared {
		return sharers(ctx, spec, j)
	}
	members, errs := make([]member, j.Goroutines), make([]error, j.Goroutines)
	inParallel(opening, j.Goroutines, func(i int) {
		members[i], errs[i] = join(ctx, spec, j, fmt.Sprintf("warm:%d:%d", j.Index, i))
	})
	return members, someOf(errs)
}

// someOf joins the first few errors: a thousand clients would say the same a thousand times.
func someOf(errs []error) error {
	const shown = 3
	errs = slices.DeleteFunc(errs, func(err error) bool { return err == nil })
	return errors.Join(errs[:min(shown, len(errs))]...)
}

// sharers opens as many clients as the job says, of which all are workers, as evenly as possible.
func sharers(ctx context.Context, spec *peer.Spec, j *Job) ([]member, error) {
	clients := min(max(j.Clients, 1), j.Goroutines)
	members, errs := make([]member, j.Goroutines), make([]error, clients)
	inParallel(opening, clients, func(i int) {
		members[i], errs[i] = join(ctx, spec, j, fmt.Sprintf("warm:%d:%d", j.Index, i))
	})
	if err := someOf(errs); err != nil {
		return nil, err
	}
	for i := clients; i < j.Goroutines; i++ {
		p := members[i%clients].Peer
		worker, err := p.Worker(peer.LockName)
		if err != nil {
			return nil, err
		}
		members[i] = member{p, worker}
	}
	return members, nil
}

func join(ctx context.Context, spec *peer.Spec, j *Job, own string) (member, error) {
	p, err := spec.Open(ctx, j.place())
	if err != nil {
		return member{}, err
	}
	warm, err := p.Worker(own)
	if err != nil {
		return member{}, err
	}
	for range warmUps {
		end, err := lockAtLast(ctx, warm)
		if err != nil {
			return member{}, err
		}
		err = warm.Unlock(ctx)
		end()
		if err != nil {
			return member{}, err
		}
	}
	worker, err := p.Worker(peer.LockName)
	return member{p, worker}, err
}
