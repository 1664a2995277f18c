package resourcelock

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/fence"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	rl "k8s.io/client-go/tools/leaderelection/resourcelock"
)

var _ rl.Interface = (*Lock)(nil)

// Lock is client-go's resourcelock.Interface. Each elector has a Lock of its own. Stamp and Context may be called at
// any time and by anybody; the other methods are for the elector.
type Lock struct {
	c              *interlock.Client
	name, identity string

	// turn is held, as its one element, by whoever asks the engine: a mutex would keep others beyond their contexts.
	turn chan struct{}

	mu sync.Mutex
	// lease is the hold, also after its loss as long as the elector may believe in it; nil if there is none.
	lease *interlock.Lease
	// led: an elector was told that it leads, and has not said yet that it stopped. Until then a lost hold stays lost.
	led         bool
	seen        bool // a leader was seen, or was this one
	transitions int  // of the last leader that was seen
	contexts    map[*context.CancelCauseFunc]struct{}
}

// New returns the lock of one candidate. All candidates have elections of the same name. The identity is what others
// read as the leader's; no two candidates may have the same, not even one after the other: use a random part. It has at
// most 132 bytes. A nil client panics; the client is the caller's to close, after the elector has ended. On an engine
// with sessions the client's Lease, which is that of its session, must be twice LeaseDuration, and at least 4 s.
func New(c *interlock.Client, name, identity string) (*Lock, error) {
	if c == nil {
		panic("resourcelock: New needs a client")
	}
	if err := checkIdentity(identity); err != nil {
		return nil, err
	}
	return &Lock{
		c: c, name: name, identity: identity, turn: make(chan struct{}, 1),
		contexts: make(map[*context.CancelCauseFunc]struct{}),
	}, nil
}

// Identity returns the candidate's identity.
func (l *Lock) Identity() string { return l.identity }

// Describe names the election for logs.
func (l *Lock) Describe() string { return fmt.Sprintf("interlock election %q", l.name) }

// Get returns who leads, as the engine says now, and bytes that are different each time, so that the elector takes it
// as an observation. If nobody leads, it is the record of a leader that has resigned, or an error that
// apierrors.IsNotFound knows if this candidate has never seen a leader. It costs one round trip.
func (l *Lock) Get(ctx context.Context) (*rl.LeaderElectionRecord, []byte, error) {
	leader, err := l.election(nil).Leader(ctx)
	if err != nil && !errors.Is(err, interlock.ErrNoLeader) {
		return nil, nil, err
	}
	now := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		if !l.seen {
			return nil, nil, apierrors.NewNotFound(schema.GroupResource{Resource: "elections"}, l.name)
		}
		return &rl.LeaderElectionRecord{LeaderTransitions: l.transitions}, observation("", now), nil
	}
	r := decode(leader, now)
	l.seen, l.transitions = true, max(l.transitions, r.LeaderTransitions)
	if r.HolderIdentity == l.identity && !l.has(leader.Token) {
		// An earlier process had the same identity, or this one has lost or given back what the engine still knows. The
		// elector must not take it for itself.
		r.HolderIdentity = fmt.Sprintf("%s (token %d)", l.identity, leader.Token)
	}
	return r, observation(leader.Value, now), nil
}

// observation returns bytes that no other Get has returned.
func observation(value string, now time.Time) []byte {
	return fmt.Appendf(nil, "%d %s", now.UnixNano(), value)
}

// has reports that the hold with this token is ours. The caller holds mu.
func (l *Lock) has(token uint64) bool {
	return l.lease != nil && l.lease.Err() == nil && l.lease.Token() == token
}

// Create leads, if nobody does. It is Update.
func (l *Lock) Create(ctx context.Context, r rl.LeaderElectionRecord) error { return l.Update(ctx, r) }

// Update takes the lead if nobody has it, or extends it; a record without a holder gives it back. It returns nil only
// if this process leads for the record's LeaseDuration from now, and otherwise why not: a *HeldError names the
// leader, a *LostError says how the lead was lost. After a loss it fails until the elector has stopped. It costs one
// round trip.
func (l *Lock) Update(ctx context.Context, r rl.LeaderElectionRecord) error {
	select {
	case l.turn <- struct{}{}:
		defer func() { <-l.turn }()
	case <-ctx.Done():
		return ctx.Err()
	}
	switch {
	case r.HolderIdentity == "":
		return l.resign(ctx)
	case r.HolderIdentity != l.identity:
		return fmt.Errorf("resourcelock: %s: the record is of %q, and this candidate is %q", l.Describe(),
			r.HolderIdentity, l.identity)
	case r.LeaseDurationSeconds < 1:
		return fmt.Errorf("resourcelock: %s: LeaseDuration must be at least one second: client-go counts whole ones",
			l.Describe())
	}
	return l.lead(ctx, &r)
}

// RecordEvent hears from the elector when it has stopped. It publishes nothing; see interlock.Observer for events.
func (l *Lock) RecordEvent(event string) {
	if event != stopped {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.led = false
}

// stopped is what an elector that led records when it leads no more, after it has given back what it had. If client-go
// ever says it in another way, a lost lead cannot be taken again with the same Lock.
const stopped = "stopped leading"

// Stamp returns the stamp of the lead for resources with a fence. It reports false if this process does not lead. Take
// it once, at the beginning of OnStartedLeading: a later one may be of another term.
func (l *Lock) Stamp() (s fence.Stamp, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lease == nil || !l.led {
		return fence.Stamp{}, false
	}
	return l.lease.Stamp()
}
