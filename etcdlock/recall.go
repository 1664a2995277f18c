// Calls: telling a client that keeps a lock for nobody that another wants it (docs/rationale.md, Retention). wait.go
// and enqueue.go call; notices.go receives through heed and noticeCalls.

package etcdlock

import (
	"context"
	"maps"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// A client that keeps a lock which nobody holds any more must learn that another wants it. Nobody knows whose lock it
// is before having read the queue, so the call is a transaction of its own, after the one that has read it: it puts a
// key below the prefix of the holder's session, which that session watches anyway. One watch does for any number of
// locks, and the call is not a message that may be lost, but a key: a session that watches anew reads it, and so it
// does with each sign of life. Whoever dies between the two transactions does not want the lock any more.
//
// The first behind the holder calls, at once if the client may retain the lock, and otherwise when it has waited for as
// long as there is between two signs of life. The holder's release deletes the call.

// call tells the client that is in the way that another wants the lock, unless it was told before. long says that the
// request has waited for a while. If the call fails, the holder looks by itself; see [Driver.Renew].
func (a *attempt) call(ctx context.Context, long bool) {
	view := &a.e.view
	holder := &view.holder
	switch mark := &holder.record; {
	case view.granted || a.e.asked == holder.revision:
	case mark.Retained, view.next && mark.Retains, view.next && mark.Listens && long:
		if a.d.call(ctx, holder) == nil {
			a.e.asked = holder.revision
		}
	}
}

// patience returns a channel that tells when the request has waited for long, or nil if that makes no difference. Such
// a holder retains nothing, so there is no hurry: it hears of waiters only so that its owner may give way.
func (a *attempt) patience() <-chan time.Time {
	view := &a.e.view
	if mark := &view.holder.record; !view.next || !mark.Listens || mark.Retains {
		return nil
	}
	return time.After(a.e.session.timeout / heartbeats)
}

// isHeld is the answer to a try that found p in its way. If p's client may retain the lock, it is called.
func (a *attempt) isHeld(ctx context.Context, p *queueKey) error {
	if p.record.Retains {
		_ = a.d.call(ctx, p) // the refusal is true in any case
	}
	return p.heldError(a.r.Key)
}

// call puts the call for the hold p. It is no error if p is over.
func (d *Driver) call(ctx context.Context, p *queueKey) error {
	// With the holder's lease, so that the call ends with the holder's session.
	call := clientv3.OpPut(d.names.call(p.session, p.revision), p.key, clientv3.WithLease(p.session))
	_, _, err := d.commit(ctx, &transaction{when: []clientv3.Cmp{isOf(p.key, p.revision)}, then: []clientv3.Op{call}})
	if isGone(err) {
		return nil
	}
	return err
}

// answerOps delete the call for a hold, in the transaction that ends the hold. Left behind, it would cost the session a
// transaction of its own later; see noticeCalls.
func (d *Driver) answerOps(was *sight) []clientv3.Op {
	if !was.called {
		return nil
	}
	return []clientv3.Op{clientv3.OpDelete(d.names.call(was.session.id, was.revision))}
}

// noticeCall records that another client wants the lock. The caller holds Driver.mu, and calls the result without it.
func (e *entry) noticeCall() func() {
	e.called = true
	if e.r.Wanted == nil {
		return func() {}
	}
	return e.r.Wanted
}

// heed tells holds what the events of the session's own keys say. It reports whether an event is about something else.
func (s *session) heed(events []*clientv3.Event) (others bool) {
	for _, event := range events {
		switch revision, is := s.d.names.called(s.id, string(event.Kv.Key)); {
		case !is:
			others = true
		case event.Type == mvccpb.PUT:
			s.noticeCall(revision, event.Kv.ModRevision)
		default:
			s.forgetCall(revision)
		}
	}
	return others
}

// noticeCall tells the hold whose key was created at revision that another client wants its lock; the call was written
// at the revision called. It reports false if there is no such hold, or none yet: the call may come before the answer
// to the request.
func (s *session) noticeCall(revision, called int64) bool {
	s.d.mu.Lock()
	e := s.holds[revision]
	if e == nil {
		s.calls[revision] = called // hold finds it there
		s.d.mu.Unlock()
		return false
	}
	tell := e.noticeCall()
	s.d.mu.Unlock()
	tell()
	return true
}

// forgetCall forgets a call for which there was no hold.
func (s *session) forgetCall(revision int64) {
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
	delete(s.calls, revision)
}

// noticeCalls is noticeCall for all calls that exist as of a revision. If the hold of a call is over, its release has
// not seen the call, which is deleted here. A call that is remembered here and was not read has been deleted with its
// hold, unless it is newer than the reading.
func (s *session) noticeCalls(ctx context.Context, calls map[int64]*mvccpb.KeyValue, asOf int64) {
	s.d.mu.Lock()
	maps.DeleteFunc(s.calls, func(revision, called int64) bool { return calls[revision] == nil && called <= asOf })
	s.d.mu.Unlock()
	for revision, kv := range calls {
		if s.noticeCall(revision, kv.ModRevision) {
			continue
		}
		over := clientv3.Compare(clientv3.CreateRevision(string(kv.Value)), "!=", revision)
		// If it stays, it is read again with the next sign of life.
		answer, err := s.d.client.Txn(ctx).If(over).Then(clientv3.OpDelete(string(kv.Key))).Commit()
		if err == nil && answer.Succeeded {
			s.forgetCall(revision)
		}
	}
}
