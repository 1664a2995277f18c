package resourcelock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/interlock-go/interlock"
	rl "k8s.io/client-go/tools/leaderelection/resourcelock"
)

// lead takes the election or extends the hold on it. The caller has the turn.
func (l *Lock) lead(ctx context.Context, r *rl.LeaderElectionRecord) error {
	// client-go cuts its LeaseDuration to whole seconds and still counts on all of it.
	promise := time.Duration(r.LeaseDurationSeconds+1) * time.Second
	hold := promise + promise/4 // the rest is the time for the engine's answer
	lease, err := l.current(ctx)
	switch {
	case err != nil:
		return err
	case lease != nil:
		err = lease.Extend(ctx, hold)
	default:
		lease, err = l.campaign(ctx, r, hold)
	}
	if err != nil {
		return err
	}
	return l.sure(lease, promise)
}

// current returns the hold, or nil if there is none. It returns the loss as long as the elector has not stopped: what
// it runs belongs to the lost term, and would go on in a new one without hearing of it.
func (l *Lock) current(ctx context.Context) (*interlock.Lease, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lease == nil {
		return nil, nil //nolint:nilnil // none is no error
	}
	ended := l.lease.Err()
	switch {
	case ended == nil:
		return l.lease, nil
	case l.led:
		return nil, fmt.Errorf("resourcelock: the lead was lost, and can be taken again when the elector has stopped: "+
			"%w", ended)
	}
	_ = l.lease.Unlock(ctx) // it was lost: this asks no engine and says so once more
	l.lease = nil
	return nil, nil //nolint:nilnil // none is no error
}

// campaign takes the election if it is free. The hold lasts for no longer than hold unless it is extended: an elector
// that stands still leads no more.
func (l *Lock) campaign(ctx context.Context, r *rl.LeaderElectionRecord, hold time.Duration) (*interlock.Lease, error) {
	value, err := encode(r)
	if err != nil {
		return nil, fmt.Errorf("resourcelock: the record: %w", err)
	}
	lease, err := l.election(&interlock.LockOptions{Lease: hold, NoRenew: true}).TryCampaign(anonymous{ctx}, value)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	l.lease, l.led = lease, false
	l.seen, l.transitions = true, r.LeaderTransitions
	l.mu.Unlock()
	ends := lease.Context(context.WithoutCancel(ctx))
	context.AfterFunc(ends, func() { l.ended(lease, context.Cause(ends)) })
	return lease, nil
}

// election is the one of all candidates.
func (l *Lock) election(opts *interlock.LockOptions) *interlock.Election {
	return l.c.Election(l.name, opts)
}

// anonymous hides the owner that a context carries: two candidates with contexts of one owner would lead together.
type anonymous struct {
	context.Context //nolint:containedctx // it is that context, for one call
}

func (anonymous) Value(any) any { return nil }

// sure makes the hold the elector's lead, if it lasts as long as the elector will count on.
func (l *Lock) sure(lease *interlock.Lease, promise time.Duration) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := lease.Err(); err != nil {
		return err
	}
	if left := time.Until(lease.Deadline()); left < promise {
		return fmt.Errorf("resourcelock: %s: the hold is sure for %v only, and %v were needed: the engine answers "+
			"slowly, or it has sessions and the client's Lease is shorter than twice LeaseDuration",
			l.Describe(), left.Round(time.Millisecond), promise)
	}
	l.led = true
	return nil
}

// resign gives the lead back. The caller has the turn.
func (l *Lock) resign(ctx context.Context) error {
	l.mu.Lock()
	lease := l.lease
	l.mu.Unlock()
	if lease == nil {
		return fmt.Errorf("resourcelock: %s: release: %w", l.Describe(), interlock.ErrNotHeld)
	}
	err := lease.Unlock(ctx)
	if errors.Is(err, interlock.ErrLost) {
		return err // it stays lost until the elector has stopped
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lease = nil
	return err
}
