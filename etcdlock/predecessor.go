// The cheap look at the one key before a waiter's own, for mutexes (docs/rationale.md, etcd: the place before its own).
// wait.go calls it; release.go and requeue.go write what it reads.

package etcdlock

import (
	"context"
	"strconv"

	clientv3 "go.etcd.io/etcd/client/v3"
)

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
