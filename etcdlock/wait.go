// Waiting behind others, and getting in beside them. acquire.go has put the key into the queue; listener.go brings
// hints, lookAtPredecessor and look read what is so.
//
// A waiter may rely on its own reading alone. In each of them one transaction compares its own key and reads what
// stands before it, so "nobody is before me" and "my key is still there" are true at the same revision. A session that
// has ended between two readings is noticed by the same comparison.

package etcdlock

import (
	"context"
	"strconv"
	"time"

	"github.com/interlock-go/interlock/driver"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// await watches the key that is in the way, and looks again when it has ended. It returns when something has changed
// for the request: run then takes the next step. A wake-up alone grants nothing.
func (a *attempt) await(ctx context.Context) error {
	a.waits()
	w := a.d.listener.watch(&a.e.view)
	defer a.d.listener.unwatch(w)
	return a.awaitHints(ctx, w)
}

// awaitHints is await with the watch w. It is left when another key is in the way, which needs another watch, and
// otherwise goes on with the same one, so that nothing is missed between two looks.
func (a *attempt) awaitHints(ctx context.Context, w *watch) error {
	e := a.e
	seldom := time.NewTicker(max(e.session.timeout, shortestFloor))
	defer seldom.Stop()
	long, patience := false, a.patience()
	a.call(ctx, long)
	for seen, watched := e.view.revision, e.view.watch; ; a.call(ctx, long) {
		var err error
		select {
		case <-w.hint:
			created, changed, failed := a.d.listener.news(w)
			switch {
			case failed != nil:
				return failed
			case changed == 0 && created <= seen: // nothing is new since the latest look
				continue
			}
			// Nobody tells what happened between our reading and the beginning of the watch.
			err = a.lookAtPredecessor(ctx, changed)
		case <-seldom.C: // in case a hint is missing, and to say who holds the lock by now
			long = true
			err = a.look(ctx)
		case <-patience:
			long = true
		case <-e.session.done: // the key is gone with it
			a.endWithSession()
			return nil
		case <-e.over: // released, undone or broken meanwhile
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
		// Another key may be in the way now, which needs another watch.
		if err != nil || e.view.granted || e.view.watch != watched {
			return err
		}
		seen = e.view.revision
		a.tell()
	}
}

// endWithSession ends the request, whose key has gone with the session.
func (a *attempt) endWithSession() {
	a.d.mu.Lock()
	defer a.d.mu.Unlock()
	a.e.end(driver.LostSession)
}

// waits records that something was in the way, which a release reads.
func (a *attempt) waits() {
	a.d.mu.Lock()
	defer a.d.mu.Unlock()
	a.e.waited = true
}

// shortestFloor is the shortest time after which a waiter looks without having been told anything. It is a safety net
// for hints that nobody has sent, and one of many waiters must not be a load by it: the default session makes it 30 s.
const shortestFloor = 10 * time.Second

// look reads whether the request's key is still there, which says that the session lives, and who is before it.
func (a *attempt) look(ctx context.Context) error {
	e := a.e
	reads := queueReads(e.r.Kind, a.d.names.queuePrefix(e.r.Key), e.revision)
	answer, _, err := a.d.commit(ctx, &transaction{when: []clientv3.Cmp{isOf(e.queueKey, e.revision)}, then: reads})
	if err != nil {
		return err
	}
	if !answer.Succeeded {
		a.vanished()
		return nil
	}
	return a.others(ctx, answer.Responses, answer.Header.Revision)
}

// others records who was found before the request.
func (a *attempt) others(ctx context.Context, found []*pb.ResponseOp, asOf int64) error {
	e := a.e
	if onlyOne(e.r.Kind) && len(kvsOf(found[0])) > 0 {
		// A waiter before it has left, so it is not known yet who holds the lock.
		prefix := a.d.names.queuePrefix(e.r.Key)
		// As of the same revision as the reading, or the two would be parts of different queues. If that fails, the
		// nearest key is named as the holder, which only the caller's message depends on.
		first, err := a.d.get(ctx, prefix, append(clientv3.WithFirstCreate(), clientv3.WithRev(asOf))...)
		if err == nil {
			found = append([]*pb.ResponseOp{rangeOp(first)}, found...)
		}
	}
	return a.judge(ctx, found, asOf)
}

// rangeOp makes a read look like a part of a transaction.
func rangeOp(r *clientv3.GetResponse) *pb.ResponseOp {
	return &pb.ResponseOp{Response: &pb.ResponseOp_ResponseRange{ResponseRange: (*pb.RangeResponse)(r)}}
}

// vanished ends the request, whose key is not there. It is over and not asked again here: the portable layer decides
// whether the request begins anew, at the end of the queue.
func (a *attempt) vanished() {
	a.d.mu.Lock()
	defer a.d.mu.Unlock()
	a.e.end(a.whyGone())
}

// whyGone guesses why the key of a living session is not there. The caller holds Driver.mu.
func (a *attempt) whyGone() driver.LostReason {
	if s := a.e.session; s.lost != nil || !time.Now().Before(s.end()) {
		return driver.LostSession
	}
	return driver.LostTaken
}

// announce rewrites the key of a semaphore's waiter that gets in, so that the request that watches it looks whether it
// fits too. It compares the key's revision: a waiter whose key is gone must not put it back.
func (a *attempt) announce(ctx context.Context) error {
	e := a.e
	rec := recordOf(e.r)
	rec.Granted = true
	answer, _, err := a.d.commit(ctx, &transaction{
		when: []clientv3.Cmp{isOf(e.queueKey, e.revision)},
		then: []clientv3.Op{clientv3.OpPut(e.queueKey, rec.text(), clientv3.WithLease(e.session.id))},
	})
	if err == nil && !answer.Succeeded {
		a.vanished()
	}
	return err
}

// tryShared tries to get in beside others. It reads the queue first, and creates its key only if it fits and nobody has
// come since: a key that is removed again would be in the way of others for a moment.
func (a *attempt) tryShared(ctx context.Context, s *session) error {
	places := a.d.names.queuePrefix(a.r.Key)
	for {
		found, err := a.d.get(ctx, places, clientv3.WithPrefix(),
			clientv3.WithSort(clientv3.SortByCreateRevision, clientv3.SortAscend))
		if err != nil {
			return err
		}
		all, err := queueKeysOf(found.Kvs)
		if err != nil {
			return err
		}
		for i := range all {
			if all[i].key == a.e.queueKey && all[i].session == s.id { // an earlier copy of the request
				a.own(all[i].revision, queueView{})
				return nil
			}
		}
		view := judge(a.r.Kind, recordOf(a.r), all, places)
		switch {
		case view.conflict != 0:
			return errConflict(a.r, view.conflict)
		case !view.granted:
			return a.isHeld(ctx, &view.holder)
		}
		if changed, err := a.createUnchanged(ctx, s, view, found.Header.Revision); !changed {
			return err
		}
		// Read again, as often as others are quicker: each time one of them has got further.
		if err := ctx.Err(); err != nil {
			return err
		}
	}
}

// createUnchanged creates the key of a try that fits, if the queue is as it was read at a revision, and records view.
// It reports changed if the queue is not.
func (a *attempt) createUnchanged(
	ctx context.Context, s *session, view queueView, asOf int64,
) (changed bool, err error) {
	t := a.creation(s)
	// A key that has gone since leaves more room, so the judgement stays true.
	t.when = append(t.when, unchanged(a.d.names.queuePrefix(a.r.Key), asOf))
	answer, err := a.create(ctx, s, t)
	switch {
	case err != nil || answer == nil:
		return false, err
	case answer.Succeeded:
		view.revision = answer.Header.Revision
		a.own(answer.Header.Revision, view)
		return false, nil
	case len(kvsOf(answer.Responses[0])) > 0 || len(kvsOf(answer.Responses[1])) > 0:
		return false, a.refused(ctx, s, answer)
	}
	return true, nil
}

// The cheap look at the one key before a waiter's own, for mutexes (docs/rationale.md, etcd: one lease and ordered
// keys). release.go and acquire.go write what it reads.

// etcd knows keys by name and not by age: "who is the last before me" makes it go through every key of the lock, those
// that have been deleted lately too. If each waiter of a long line asked so when its turn has come, the line would cost
// the square of its length. So a waiter of a mutex asks about the queue key right before its own alone. Nobody gets
// between the two, because create revisions grow; and nobody is before that queue key any more once it has had the
// lock, which its release writes down. Only the release does so in the transaction that deletes the queue key: what
// anybody else writes there has another revision than the end of the queue key, and says nothing.

// servedOps are the operations by which a release records the session's latest hold that had waited for its turn and
// was given back. They must be in the transaction that compares that hold's revision and deletes its key. A hold that
// found the lock free writes nothing, so a lock that nobody else wants costs nothing more; the second in the line knows
// without it.
func (d *Driver) servedOps(was *sight) []clientv3.Op {
	if !was.waited {
		return nil
	}
	return []clientv3.Op{clientv3.OpPut(d.names.served(was.session.id), strconv.FormatInt(was.revision, 10),
		clientv3.WithLease(was.session.id))}
}

// servedAt compares whether the queue key that was created at one revision had had the lock when it was deleted at the
// other.
func servedAt(key string, created, deleted int64) []clientv3.Cmp {
	return []clientv3.Cmp{
		clientv3.Compare(clientv3.Value(key), "=", strconv.FormatInt(created, 10)),
		clientv3.Compare(clientv3.ModRevision(key), "=", deleted),
	}
}

// saysNothing makes a release of e leave out what servedOps would record. Others then find no word of this hold and
// read the queue, which is dearer and as right.
func (e *entry) saysNothing() {
	e.d.mu.Lock()
	defer e.d.mu.Unlock()
	e.waited = false
}

// predecessorCmps are the comparisons of lookAtPredecessor. The request's own key is always among them: without it a
// waiter whose session has ended, or whose key was deleted, would be let in.
func (a *attempt) predecessorCmps(gone int64) []clientv3.Cmp {
	e := a.e
	predecessor := &e.view.predecessor
	own := isOf(e.queueKey, e.revision)
	switch {
	// It is still there, so nothing has changed.
	case gone == 0:
		return []clientv3.Cmp{own, isOf(predecessor.key, predecessor.revision)}
	// It was the only one before this request, so its end is enough.
	case e.view.second:
		over := clientv3.Compare(clientv3.CreateRevision(predecessor.key), "!=", predecessor.revision)
		return []clientv3.Cmp{own, over}
	}
	// It has had the lock, so nobody is before it.
	return append([]clientv3.Cmp{own},
		servedAt(a.d.names.served(predecessor.session), predecessor.revision, gone)...)
}

// lookAtPredecessor asks about the queue key right before the request's own, and no other. gone is the revision at
// which that has ended, as the watch has told, or 0. It only chooses which question is asked; the servers' comparisons
// decide. If they do not settle it, the same round trip reads who else is before the request.
func (a *attempt) lookAtPredecessor(ctx context.Context, gone int64) error {
	e := a.e
	if !onlyOne(e.r.Kind) {
		return a.look(ctx)
	}
	// It only reads, so servers do not write it to their disks.
	others := queueReads(e.r.Kind, a.d.names.queuePrefix(e.r.Key), e.revision)
	answer, _, err := a.d.commit(ctx, &transaction{
		when: a.predecessorCmps(gone),
		els:  append([]clientv3.Op{clientv3.OpGet(e.queueKey, clientv3.WithKeysOnly())}, others...),
	})
	if err != nil {
		return err
	}
	asOf := answer.Header.Revision
	// All comparisons hold: nothing is before the request, or it waits as before.
	if answer.Succeeded {
		view := e.view
		view.revision, view.granted = asOf, gone != 0
		a.own(e.revision, view)
		return nil
	}
	own := kvsOf(answer.Responses[0])
	if len(own) == 0 || own[0].CreateRevision != e.revision {
		a.vanished()
		return nil
	}
	return a.others(ctx, answer.Responses[1:], asOf)
}
