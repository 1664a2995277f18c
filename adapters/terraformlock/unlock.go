package terraformlock

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/webguard"
)

// unlockTime is how long an unlock waits for the engine's word: less than clients and servers wait for an answer. The
// release goes on after it.
const unlockTime = 20 * time.Second

// unlock gives a state's lock back. Without a body it is a forced one: "terraform force-unlock ID" sends none, whatever
// the ID is, so nobody can tell here whether that lock was meant.
func (b *Backend) unlock(w http.ResponseWriter, r *http.Request, state string) {
	id, _, ok := b.readInfo(w, r)
	if !ok {
		return
	}
	b.mu.Lock()
	now := b.held[state]
	b.mu.Unlock()
	switch {
	case now == nil, now.id != id && errors.Is(now.lease.Err(), interlock.ErrLost):
		b.unlockNobody(w, r, state)
	case id != "" && id != now.id:
		answerInfo(w, http.StatusLocked, now.info)
	default:
		if id == "" {
			b.tellForced(r, state, now)
		}
		b.giveBack(w, r, state, now, id == "")
	}
}

// tellForced logs that the lock of a run is about to be freed by somebody else: the run may be at work. Otherwise
// nothing would show afterwards who has done it.
func (b *Backend) tellForced(r *http.Request, state string, now *run) {
	b.o.Logger.LogAttrs(r.Context(), slog.LevelWarn, "terraformlock: the lock of a run is freed by force",
		slog.String("who", webguard.Visitor(r.Context())), slog.String("from", r.RemoteAddr),
		slog.String("state", state), slog.String("id", now.id), slog.Duration("age", time.Since(now.since)),
		slog.String("run", string(now.info)))
}

// giveBack ends the lock of a run. Until it is known to have ended the run stays known, so that it may ask again: the
// release goes on meanwhile.
func (b *Backend) giveBack(w http.ResponseWriter, r *http.Request, state string, now *run, forced bool) {
	bounded, cancel := context.WithTimeout(r.Context(), unlockTime)
	defer cancel()
	err := now.lease.Unlock(bounded)
	if errors.Is(err, interlock.ErrReleased) { // an earlier request did not learn how it ended, or is waiting still
		err = b.gone(r.Context(), state, now.lease.Token())
	} else {
		forced = false
	}
	if err != nil && !errors.Is(err, interlock.ErrLost) {
		b.refuse(w, state, err)
		return
	}
	b.forget(r.Context(), state, now)
	switch {
	case err != nil:
		b.refuse(w, state, err)
	case forced: // it means whoever has the lock, and that may be another by now
		b.unlockNobody(w, r, state)
	}
}

// gone returns nil if the hold with that token, which was given back, has left the engine.
func (b *Backend) gone(ctx context.Context, state string, token uint64) error {
	now, err := b.locks.Look(ctx, interlock.KindMutex, prefix+state)
	if errors.Is(err, interlock.ErrUnsupported) {
		return b.takeOnce(ctx, state)
	}
	for _, h := range now.Holders {
		if h.Token == token {
			return &interlock.UnavailableError{
				Op: "unlock", Name: prefix + state, Err: errors.New("the lock is being given back: ask again"),
			}
		}
	}
	return err
}

// unlockNobody answers an unlock of what this server has not locked: it may have been unlocked before, and the answer
// was lost.
func (b *Backend) unlockNobody(w http.ResponseWriter, r *http.Request, state string) {
	now, err := b.locks.Look(r.Context(), interlock.KindMutex, prefix+state)
	if errors.Is(err, interlock.ErrUnsupported) {
		err = b.takeOnce(r.Context(), state)
	}
	switch {
	case errors.Is(err, interlock.ErrHeld), len(now.Holders) > 0:
		http.Error(w, "another server has locked this state: unlock it there, or end its lock by \"interlock break\"",
			http.StatusLocked)
	case err != nil:
		b.refuse(w, state, err)
	}
}

// takeOnce tells whether a lock is free by taking it, on an engine that cannot be asked. A run that comes at this
// moment is refused, so engines that can be asked are.
func (b *Backend) takeOnce(ctx context.Context, state string) error {
	lease, err := b.mutex(state, "unlocking").TryLock(ctx)
	if err == nil {
		err = lease.Unlock(ctx)
	}
	return err
}

// forget forgets a run whose lock has ended.
func (b *Backend) forget(ctx context.Context, state string, r *run) {
	b.states.forgetInfo(ctx, state, r.lease.Token())
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.held[state] == r { // and not the run after it
		delete(b.held, state)
	}
}

// Close gives all locks back: runs that go on cannot write any more. Requests are answered with 503 from then on. Its
// error names the locks that the engine may have until their leases end.
func (b *Backend) Close(ctx context.Context) error {
	b.mu.Lock()
	held := b.held
	b.held, b.closed = map[string]*run{}, true
	b.mu.Unlock()
	var all []error
	for state, r := range held {
		if err := r.lease.Unlock(ctx); errors.Is(err, interlock.ErrUnavailable) {
			all = append(all, fmt.Errorf("terraformlock: state %s: %w", state, err))
		}
		b.states.forgetInfo(ctx, state, r.lease.Token())
	}
	return errors.Join(all...)
}
