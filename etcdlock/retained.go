// Showing a hold as retained, and looking whether others wait. The scheduler calls Renew.

package etcdlock

import (
	"context"
	"errors"
	"maps"
	"time"

	"github.com/interlock-go/interlock/driver"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// A hold lasts as long as its session, so a renewal lengthens nothing. It shows operators that a lock is retained, or
// is held again, and it looks whether others wait: those whose version does not call, or whose call failed.

// renewsAtOnce is how many holds are in one transaction. By default servers allow 128 operations. A renewal is two of
// them, or one with an inner transaction of two.
const renewsAtOnce = 32

// showing numbers what the key of a hold must show, in the order in which it comes about: pass after pass, and each is
// retained, if at all, after it was held. A late renewal has a lower number than the last.
type showing int

// showingOf returns what a renewal wants to be shown.
func showingOf(r *driver.Renewal) showing {
	n := showing(2 * r.Pass)
	if r.Retained {
		n++
	}
	return n
}

// Renew rewrites the keys of holds that must show something else than they do, and tells the holders of locks for which
// others wait. One transaction serves up to 32 holds; if nothing is rewritten, it only reads. Renew blocks until all
// are answered, and calls done once for each, in its own goroutine.
func (d *Driver) Renew(ctx context.Context, batch []driver.Renewal, done func(i int, err error)) {
	bounded, leave, err := d.enterCall(ctx)
	if err != nil {
		for i := range batch {
			done(i, err)
		}
		return
	}
	defer leave()
	for first := 0; first < len(batch); first += renewsAtOnce {
		var part []*renewing
		for i := first; i < min(first+renewsAtOnce, len(batch)); i++ {
			part = append(part, &renewing{r: &batch[i], i: i})
		}
		d.renewPart(bounded, part)
		for _, n := range part {
			// A loss is an answer. Everything else means that the engine is unavailable.
			if n.err != nil && !errors.Is(n.err, driver.ErrLost) {
				n.err = d.unavailable(ctx, "renew", n.r.Name, n.err)
			}
			// Owners are told here, with no mutex held, because it is their code.
			if n.wanted != nil {
				n.wanted()
			}
			done(n.i, n.err)
		}
	}
}

// renewing is one renewal under way.
type renewing struct {
	r *driver.Renewal
	i int // its index in the batch

	e      *entry
	puts   bool   // what is shown must change
	mod    int64  // the revision at which the key was written last, as far as is known
	wanted func() // the caller's code, to be called if others wait
	over   bool   // it is answered, with err
	err    error
}

// changes bounds how often a renewal that finds its key changed is repeated. Only this driver changes the key, so once
// is mostly enough.
const changes = 4

// renewPart answers all of part. It is repeated for those whose key was not as it was known, and for those of another
// session.
func (d *Driver) renewPart(ctx context.Context, part []*renewing) {
	for range changes {
		var ops []clientv3.Op
		var asked []*renewing
		for _, n := range part {
			// Holds of another session are left to the next round: a transaction is about one.
			if n.prepare(d) && (len(asked) == 0 || n.e.session == asked[0].e.session) {
				asked, ops = append(asked, n), append(ops, n.ops()...)
			}
		}
		if len(asked) == 0 {
			return
		}
		answer, _, err := d.commit(ctx, &transaction{then: ops})
		for _, n := range asked {
			switch {
			case err == nil && n.puts:
				n.rewrote(ctx, answer.Responses[0].GetResponseTxn(), answer.Header.Revision)
				answer.Responses = answer.Responses[1:]
			case err == nil:
				n.looked(ctx, answer.Responses[0], answer.Responses[1])
				answer.Responses = answer.Responses[2:]
			case isGone(err): // its session is over, and so is the hold
				n.e.session.lose(err)
				n.fail(lost(n.r.Key, 0, driver.LostSession, err))
			default:
				n.fail(err)
			}
		}
	}
	for _, n := range part {
		if !n.over {
			n.fail(errChanging)
		}
	}
}

// errChanging says that somebody else writes a key of this session.
var errChanging = errors.New("etcd: the key of the hold changes again and again")

// fail answers n with an error.
func (n *renewing) fail(err error) { n.over, n.err = true, err }

// prepare finds out what must be asked. It reports false if nothing must.
func (n *renewing) prepare(d *Driver) bool {
	if n.over {
		return false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	e := d.entries[holdID{n.r.Key, n.r.ID}]
	switch {
	case e == nil || e.released || !e.granted:
		n.fail(lost(n.r.Key, 0, driver.LostExpired, nil))
		return false
	case e.ended != "":
		n.fail(lost(n.r.Key, e.token(), e.ended, nil))
		return false
	case !time.Now().Before(e.session.end()):
		n.fail(lost(n.r.Key, e.token(), driver.LostSession, nil))
		return false
	}
	now := showingOf(n.r)
	e.wanting = max(e.wanting, now)
	n.e, n.mod = e, max(e.written, e.revision)
	n.puts = now == e.wanting && now != e.shown // otherwise it is a late one, or shown already
	return true
}

// ops are the part of a transaction that is about n. Two keys are enough to see whether anybody else is in the queue.
// Reads stand by themselves: a transaction of nothing but reads writes nothing to the servers' disks.
func (n *renewing) ops() []clientv3.Op {
	e := n.e
	own := clientv3.OpGet(e.queueKey, clientv3.WithKeysOnly())
	others := clientv3.OpGet(e.d.names.queuePrefix(e.r.Key), clientv3.WithPrefix(), clientv3.WithLimit(2),
		clientv3.WithKeysOnly())
	if !n.puts {
		return []clientv3.Op{own, others}
	}
	// No other request's key has that revision, even if it is written after this hold is over.
	when := []clientv3.Cmp{clientv3.Compare(clientv3.ModRevision(e.queueKey), "=", n.mod)}
	put := clientv3.OpPut(e.queueKey, n.record().text(), clientv3.WithLease(e.session.id))
	return []clientv3.Op{clientv3.OpTxn(when, []clientv3.Op{others, put}, []clientv3.Op{own})}
}

// record is what the key must show. The rest must stay as it was at the creation: other requests judge by it.
func (n *renewing) record() record {
	rec := recordOf(n.e.r)
	rec.Owner, rec.Label, rec.Retained = n.r.Owner, n.r.Label, n.r.Retained
	return rec
}

// rewrote records what became of the key, as of a revision.
func (n *renewing) rewrote(ctx context.Context, said *pb.TxnResponse, revision int64) {
	if said.Succeeded {
		n.learn(revision, said.Responses[0])
		return
	}
	own := kvsOf(said.Responses[0])
	if n.isGone(ctx, own) {
		return
	}
	// Another renewal was faster, or an answer was lost: it is repeated, with the key as it is now.
	n.e.d.mu.Lock()
	defer n.e.d.mu.Unlock()
	n.e.written = max(n.e.written, own[0].ModRevision)
}

// looked records what was read.
func (n *renewing) looked(ctx context.Context, own, queue *pb.ResponseOp) {
	if !n.isGone(ctx, kvsOf(own)) {
		n.learn(0, queue)
	}
}

// learn records that the hold is there, that its key was written at a revision (or 0), and whether others are in the
// queue.
func (n *renewing) learn(written int64, queue *pb.ResponseOp) {
	e := n.e
	n.over = true
	e.d.mu.Lock()
	defer e.d.mu.Unlock()
	// Answers may come in another order than the writes. The latest write counts.
	if written > e.written {
		e.written, e.shown = written, showingOf(n.r)
	}
	for _, kv := range kvsOf(queue) {
		// Another key in the queue belongs to a waiter.
		if string(kv.Key) != e.queueKey && e.ended == "" && !e.released {
			n.wanted = e.r.Wanted
		}
	}
}

// isGone reports whether the key that was read is not the hold's, and answers n then.
func (n *renewing) isGone(ctx context.Context, own []*mvccpb.KeyValue) bool {
	e := n.e
	if len(own) > 0 && own[0].CreateRevision == e.revision {
		return false
	}
	e.session.readNotices(ctx) // which may know a better reason
	e.tellEnded(driver.LostTaken)
	e.d.mu.Lock()
	defer e.d.mu.Unlock()
	reason := e.ended
	if reason == "" { // it was released meanwhile
		reason = driver.LostExpired
	}
	n.fail(lost(e.r.Key, e.token(), reason, nil))
	return true
}

// Calls: telling a client that keeps a lock for nobody that another wants it (docs/rationale.md, Retention). wait.go
// and acquire.go call; notices.go receives through heed and noticeCalls.

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
