// Release and undo, and the tombs that refuse late copies. entry.go keeps what is released; acquire.go releases in
// another transaction.
//
// A release may be sent twice, late, or after the hold has ended in another way, and must end nothing else. So it
// compares the create revision of the key. While that is not known, the name of the key is nobody else's. What it
// cannot know it says: after a repeated release whose key is gone, nobody can tell whether it was the first copy or
// somebody else (errUnsure), and the caller asks again.

package etcdlock

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/enginekit"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// Release ends a hold and lets in the next waiter, in one transaction. It compares the key's revision, so the key is
// deleted only if it is the one that was granted. An error that matches driver.ErrLost says that the hold was over
// before; after any other error the outcome is unknown, and the caller releases again.
func (d *Driver) Release(ctx context.Context, r *driver.Release) error {
	bounded, leave, err := d.enterCall(ctx)
	if err != nil {
		return err
	}
	defer leave()
	id := holdID{r.Key, r.ID}
	e := d.leave(id) // from here on nobody is told of a loss
	switch {
	case r.Undo && e != nil:
		err = d.undo(bounded, r, e)
	case r.Undo:
		err = d.undoUnknown(bounded, r)
	case e != nil:
		err = d.free(bounded, r, e)
	default:
		err = d.freeUnknown(bounded, r)
	}
	if e != nil {
		err = d.answered(e, r.Undo, err)
	}
	switch {
	case err == nil, errors.Is(err, driver.ErrLost):
		d.forget(id)
		return err
	case errors.Is(err, errUnsure):
		return &driver.UnavailableError{Op: "release", Name: r.Name, Err: err}
	}
	return d.unavailable(ctx, "release", r.Name, err)
}

// errUnsure says that it is not known which copy of a release has ended the hold, or whether it had ended before.
var errUnsure = errors.New("etcd: the release was sent more than once, and the hold is over")

// sight is what a release must know of an entry, read under Driver.mu once. One reading, so that its parts belong
// together: a session that is lost in between, or a call that comes, is seen by a later release.
type sight struct {
	session  *session
	queueKey string
	revision int64
	open     bool // a copy of the request may be under way
	waited   bool // it waited for its turn and got it, for a lock with one holder
	called   bool // there is a call to delete
	ended    driver.LostReason
}

// see reads what a release must know.
func (e *entry) see() sight {
	e.d.mu.Lock()
	defer e.d.mu.Unlock()
	waited := e.granted && e.waited && onlyOne(e.r.Kind)
	return sight{e.session, e.queueKey, e.revision, e.open > 0, waited, e.called, e.ended}
}

// created compares whether the request's key is there.
func (s *sight) created() clientv3.Cmp {
	if s.revision == 0 { // while that is not known, the key is nobody else's
		return clientv3.Compare(clientv3.CreateRevision(s.queueKey), ">", 0)
	}
	return isOf(s.queueKey, s.revision)
}

// free ends the hold.
func (d *Driver) free(ctx context.Context, r *driver.Release, e *entry) error {
	was := e.see()
	switch {
	case was.ended != "":
		return lost(r.Key, uint64(was.revision)*blockSize, was.ended, nil)
	case was.queueKey == "":
		return lost(r.Key, 0, driver.LostExpired, nil) // it was not asked for yet
	}
	t, tomb := d.ending(r, &was)
	whole := *t
	whole.then = slices.Concat(t.then, d.servedOps(&was))
	answer, doubtful, err := d.commit(ctx, &whole)
	if was.waited && isFull(err) { // a deletion alone needs no room
		e.saysNothing() // also for a later call, which could never succeed otherwise
		answer, _, err = d.commit(ctx, t)
		doubtful = true // the first may have taken the last room and been carried out
	}
	switch {
	case err != nil && isGone(err): // its session is over, and so is the hold
		return lost(r.Key, 0, driver.LostSession, err)
	case err != nil && doubtful: // the doubt may be about whole alone
		return uncertainError{err}
	case err != nil:
		return err
	case answer.Succeeded:
		d.buried(tomb, r.Horizon)
		return nil
	}
	reason := d.brokenMeanwhile(e, len(kvsOf(answer.Responses[0])) > 0)
	if doubtful && reason == driver.LostExpired {
		return errUnsure
	}
	return lost(r.Key, uint64(was.revision)*blockSize, reason, nil)
}

// ending is the transaction that ends a hold, without what servedOps add, and the tomb that it puts, or "".
func (d *Driver) ending(r *driver.Release, was *sight) (t *transaction, tomb string) {
	// If the hold is gone, the same round trip tells whether it was broken.
	notice := clientv3.OpGet(d.names.notice(was.session.id, was.revision), clientv3.WithKeysOnly())
	t = &transaction{
		when: []clientv3.Cmp{was.created()},
		then: []clientv3.Op{clientv3.OpDelete(was.queueKey)},
		els:  []clientv3.Op{notice},
	}
	// A copy of the creation may arrive after the deletion: the tomb refuses it.
	if was.open {
		tomb = d.names.tomb(r.Key, r.ID)
		t.then = append(t.then, clientv3.OpPut(tomb, "", clientv3.WithLease(was.session.id)))
	}
	t.then = append(t.then, d.answerOps(was)...)
	return t, tomb
}

// freeUnknown ends a hold that was not acquired here, or long ago. It finds it by the ID in its record, which costs a
// read of the queue. It writes no tomb: the undo of an unknown request has written one before, and a hold that is
// released has had its answer.
func (d *Driver) freeUnknown(ctx context.Context, r *driver.Release) error {
	queue, err := d.queue(ctx, r.Key)
	if err != nil {
		return err
	}
	for _, p := range queue {
		// The ID is the request's own, so at most one key has it.
		if p.record.ID != r.ID {
			continue
		}
		// The key is deleted only in the revision that was read: a later request may have the same key.
		t := &transaction{when: []clientv3.Cmp{isOf(p.key, p.revision)}, then: []clientv3.Op{clientv3.OpDelete(p.key)}}
		answer, doubtful, err := d.commit(ctx, t)
		switch {
		case err != nil:
			return err
		case answer.Succeeded:
			return nil
		// The answer was lost, so the key may be deleted or not.
		case doubtful:
			return errUnsure
		}
	}
	return lost(r.Key, 0, driver.LostExpired, nil)
}

// brokenMeanwhile says why a hold was gone when it was to be released. If it was broken, and the notice was not seen
// before, the caller is told now.
func (d *Driver) brokenMeanwhile(e *entry, notice bool) driver.LostReason {
	d.mu.Lock()
	if !e.broken && !notice {
		d.mu.Unlock()
		return driver.LostExpired
	}
	tell := e.inform()
	d.mu.Unlock()
	tell(driver.LostBroken, nil)
	return driver.LostBroken
}

// undo removes what a request may have left. If a copy of it may still be under way, a tomb refuses it. Without a copy
// under way the deletion is enough. A key that is gone already is as good, so the comparison's outcome does not matter.
func (d *Driver) undo(ctx context.Context, r *driver.Release, e *entry) error {
	was := e.see()
	t := &transaction{then: []clientv3.Op{clientv3.OpDelete(was.queueKey)}}
	switch {
	case !was.open && was.revision == 0:
		return nil // nothing was sent, or it was refused
	case !was.open:
		t.when = []clientv3.Cmp{was.created()}
		_, _, err := d.commit(ctx, t)
		return err
	}
	tomb := d.names.tomb(r.Key, r.ID)
	t.then = append(t.then, clientv3.OpPut(tomb, "", clientv3.WithLease(was.session.id)))
	_, _, err := d.commit(ctx, t)
	switch {
	case err != nil && isGone(err):
		was.session.lose(err) // so that whatever is under way for it comes too late
		return nil
	case err == nil:
		d.buried(tomb, r.Horizon)
	}
	return err
}

// undoUnknown is undo for a request that this driver does not know. The tomb comes first: afterwards no copy can create
// a key.
func (d *Driver) undoUnknown(ctx context.Context, r *driver.Release) error {
	s, err := d.session(ctx)
	if err != nil {
		return err
	}
	tomb := d.names.tomb(r.Key, r.ID)
	put := clientv3.OpPut(tomb, "", clientv3.WithLease(s.id))
	if _, _, err := d.commit(ctx, &transaction{then: []clientv3.Op{put}}); err != nil {
		return err
	}
	d.buried(tomb, r.Horizon)
	err = d.freeUnknown(ctx, r)
	if err == nil || errors.Is(err, driver.ErrLost) || errors.Is(err, errUnsure) {
		return nil // nothing is left
	}
	return uncertainError{err} // the tomb is there, so "not sent" would be untrue
}

// tomb is a key that refuses late copies of a request. It belongs to the request's session: without that no copy can be
// carried out either.
type tomb struct {
	key string
	due time.Time // when it may be removed
}

const (
	// shortestTomb is how long a tomb refuses at least. Package driver takes a copy of a request to be under way for so
	// long at least.
	shortestTomb = 10 * time.Second

	// sweepPause is the pause between two removals of tombs that are due, and sweepMost how many go in one transaction.
	// By default servers allow 128 operations in a transaction. Tombs cost nothing but room on the servers, so there is
	// no hurry.
	sweepPause = 5 * time.Second
	sweepMost  = 64
)

// buried has a tomb removed when its time is over. That is after the horizon, in which the caller of the request may
// still have a copy under way. Without that, a session that lasts for months would collect them.
func (d *Driver) buried(key string, horizon time.Duration) {
	if key == "" {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.tombs = append(d.tombs, tomb{key, time.Now().Add(max(horizon, shortestTomb))})
	if !d.sweeps && !d.closed {
		d.sweeps = true
		d.spawn(d.sweep) // ends when no tomb is left
	}
}

// sweep removes tombs until none is left. It is a goroutine of the driver, at most one at a time.
func (d *Driver) sweep() {
	for enginekit.Pause(d.life, sweepPause) {
		due, more := d.dueTombs()
		if len(due) > 0 {
			// If it fails, they stay until the session ends, and cost no more than that.
			_, _, _ = d.commit(d.life, &transaction{then: due})
		}
		if !more {
			return
		}
	}
}

// dueTombs takes some that are due out of the list, and reports whether any are left in it.
func (d *Driver) dueTombs() (due []clientv3.Op, more bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := time.Now()
	// The list is filtered in place: left never gets ahead of what is read.
	left := d.tombs[:0]
	for _, t := range d.tombs {
		if len(due) < sweepMost && now.After(t.due) {
			due = append(due, clientv3.OpDelete(t.key))
		} else {
			left = append(left, t)
		}
	}
	d.tombs = left
	d.sweeps = len(left) > 0
	return due, d.sweeps
}
