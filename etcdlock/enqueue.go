// Getting into a queue: one transaction that creates the request's key and reads who is before it. acquire.go calls
// enqueue; queue_view.go judges what was read; wait.go goes on.
//
// A creation is the one request that can leave something behind which its sender does not know of. Three things keep it
// from harm. Its key is named for one request at a time; it is refused if the key is there, so a copy takes nothing
// twice; and it is refused by a tomb, so a copy that comes after an undo takes nothing at all.

package etcdlock

import (
	"context"
	"errors"
	"slices"

	"github.com/interlock-go/interlock/driver"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// enqueue puts the request's key into the queue, or refuses a try. The same transaction reads who is before it.
func (a *attempt) enqueue(ctx context.Context) error {
	s, err := a.join(ctx)
	if err != nil {
		return err
	}
	if a.r.Try && !onlyOne(a.r.Kind) {
		return a.tryShared(ctx, s)
	}
	t, reads := a.placing(s)
	prefix := a.d.names.queuePrefix(a.r.Key)
	// The else branch finds a copy of this request first, and then whoever is in the way.
	switch {
	case a.r.Try:
		t.when = append(t.when, clientv3.Compare(clientv3.CreateRevision(prefix).WithPrefix(), "=", 0))
		t.els = append(t.els, clientv3.OpGet(prefix, clientv3.WithFirstCreate()...))
	case a.r.Kind == driver.KindSemaphore:
		t.when = append(t.when, a.d.names.noOtherLimit(a.r)...)
		t.els = append(t.els, queueReads(a.r.Kind, prefix, 0)...)
	}
	answer, err := a.create(ctx, s, t)
	switch {
	case err != nil || answer == nil:
		return err
	case answer.Succeeded:
		return a.placed(ctx, answer, reads)
	}
	return a.refused(ctx, s, answer)
}

// placing is a transaction that creates the key and reads who is before it, in so many reads.
func (a *attempt) placing(s *session) (t *transaction, reads int) {
	t = a.creation(s)
	// A transaction sees its own writes, so reads after the put would find this request in front of itself.
	ahead := queueReads(a.r.Kind, a.d.names.queuePrefix(a.r.Key), 0)
	t.then = append(ahead, t.then...) // before the key is there, so that it is not among them
	// The hold's key is compared, deleted, and replaced by the new one in one step: nobody gets in between.
	if a.give != nil {
		t.when = append(t.when, isOf(a.give.queueKey, a.give.revision))
		t.then = append([]clientv3.Op{clientv3.OpDelete(a.give.queueKey)}, t.then...)
		t.then = append(t.then, a.give.ops(s)...)
	}
	return t, len(ahead)
}

// placed records what a transaction of placing has done.
func (a *attempt) placed(ctx context.Context, answer *clientv3.TxnResponse, reads int) error {
	found := answer.Responses
	if a.give != nil {
		found = found[1:]
		a.given()
	}
	return a.queued(ctx, answer.Header.Revision, found[:reads])
}

// amongOthers creates the key in the queue of a semaphore in which not all keys have the request's limit in their
// names, as was read at a revision. So another limit is in use, or there are keys of earlier versions, and then the
// records say what the limit is. The key is created if the queue is as it was read.
func (a *attempt) amongOthers(ctx context.Context, s *session, queue []*mvccpb.KeyValue, asOf int64) error {
	prefix := a.d.names.queuePrefix(a.r.Key)
	for {
		all, err := queueKeysOf(queue)
		if err != nil {
			return err
		}
		isGiven := func(p queueKey) bool { return p.key == a.give.queueKey && p.revision == a.give.revision }
		switch view := judge(a.r.Kind, recordOf(a.r), all, prefix); {
		case a.give != nil && !slices.ContainsFunc(all, isGiven):
			return lost(a.r.Key, 0, driver.LostExpired, errNothingToGive)
		case view.conflict != 0:
			return errConflict(a.r, view.conflict)
		}
		t, reads := a.placing(s)
		t.when = append(t.when, unchanged(prefix, asOf))
		t.els = append(t.els, queueReads(a.r.Kind, prefix, 0)...)
		answer, err := a.create(ctx, s, t)
		switch {
		case err != nil || answer == nil:
			return err
		case answer.Succeeded:
			return a.placed(ctx, answer, reads)
		case len(kvsOf(answer.Responses[0])) > 0 || len(kvsOf(answer.Responses[1])) > 0:
			return a.refused(ctx, s, answer)
		}
		// Others were quicker, as often as they are: each time one of them has got further.
		if err := ctx.Err(); err != nil {
			return err
		}
		queue, asOf = kvsOf(answer.Responses[2]), answer.Header.Revision
	}
}

// unchanged compares whether nothing below the prefix was written after a revision. A key that has gone since does not
// count as written.
func unchanged(prefix string, asOf int64) clientv3.Cmp {
	return clientv3.Compare(clientv3.ModRevision(prefix), "<", asOf+1).WithPrefix()
}

// creation is the part of the transaction that all requests have: the key must not be there, and no tomb may refuse the
// request. The put has the session's lease. If that has ended, the servers refuse the transaction as a whole, so a
// client that has stood still cannot enter a queue.
func (a *attempt) creation(s *session) *transaction {
	tomb := a.d.names.tomb(a.r.Key, a.r.ID)
	return &transaction{
		when: []clientv3.Cmp{absent(a.e.queueKey), absent(tomb)},
		then: []clientv3.Op{clientv3.OpPut(a.e.queueKey, recordOf(a.r).text(), clientv3.WithLease(s.id))},
		els:  []clientv3.Op{clientv3.OpGet(a.e.queueKey), clientv3.OpGet(tomb)},
	}
}

// queueReads returns the reads that tell who is in the queue; if before is not 0, only those whose keys were created
// before that revision. For a mutex the last key and the first are enough; the first is read to say who holds the lock.
// Readers and permits need the whole queue: whether they get in depends on every key before them.
func queueReads(k driver.Kind, prefix string, before int64) []clientv3.Op {
	var limit []clientv3.OpOption
	if before != 0 {
		limit = []clientv3.OpOption{clientv3.WithMaxCreateRev(before - 1)}
	}
	if !onlyOne(k) {
		all := clientv3.WithSort(clientv3.SortByCreateRevision, clientv3.SortAscend)
		return []clientv3.Op{clientv3.OpGet(prefix, append(limit, clientv3.WithPrefix(), all)...)}
	}
	last := clientv3.OpGet(prefix, append(clientv3.WithLastCreate(), limit...)...)
	if before != 0 {
		return []clientv3.Op{last} // mostly there is none
	}
	return []clientv3.Op{clientv3.OpGet(prefix, clientv3.WithFirstCreate()...), last}
}

// join returns the session that the request belongs to, and gives it a key in that.
func (a *attempt) join(ctx context.Context) (*session, error) {
	s, err := a.d.session(ctx)
	if err != nil {
		return nil, err
	}
	e := a.e
	a.d.mu.Lock()
	defer a.d.mu.Unlock()
	if e.session != nil && e.session != s && e.open > 0 {
		e.end(driver.LostSession) // it may have a key in the old one, which nothing here would see
		return nil, lost(e.r.Key, 0, driver.LostSession, nil)
	}
	// An earlier attempt may have had a key in a session that is lost by now. It made nothing there that could be left,
	// or the check above has ended the request.
	if e.session != s || e.vacated {
		e.vacate()
		s.occupy(e)
	}
	return s, nil
}

// given records that the hold to be given back has ended. It is called as soon as an answer shows that the new key
// exists, because the same transaction has deleted the old one. Nobody is told of a loss then: leave comes before
// forget.
func (a *attempt) given() {
	if a.give != nil {
		id := holdID{a.give.r.Key, a.give.r.ID}
		a.d.buried(a.give.tomb, a.give.horizon)
		a.d.leave(id)
		a.d.forget(id)
		a.give = nil
	}
}

// create sends a transaction that may create the request's key. If it returns neither an error nor an answer, the
// session has turned out to be lost, and nothing was created in it.
func (a *attempt) create(ctx context.Context, s *session, t *transaction) (*clientv3.TxnResponse, error) {
	e, d := a.e, a.d
	d.mu.Lock()
	if e.released || e.ended != "" {
		d.mu.Unlock()
		return nil, nil //nolint:nilnil // run looks at what it has become
	}
	// open stays up if the answer is lost. From now on an undo must not rely on what it sees. It goes up before the
	// request is sent: a release that comes while it is under way must write a tomb.
	e.open++
	d.mu.Unlock()
	answer, doubtful, err := d.commit(ctx, t)
	// A server without room may have carried the request out all the same.
	if isFull(err) && !d.clean(ctx, e.queueKey) {
		doubtful = true
	}
	a.unsure = a.unsure || doubtful
	if !doubtful {
		d.mu.Lock()
		e.open--
		d.mu.Unlock()
	}
	if err != nil && isGone(err) && !doubtful {
		s.lose(err)
		return nil, nil //nolint:nilnil // the next session is tried
	}
	return answer, err
}

// clean removes what a request has made although the servers say that they have no room, and reports whether they have
// answered. An undo that writes a tomb would find no room either. The key is deleted as what it is now: a copy of this
// deletion may arrive when it is another one.
func (d *Driver) clean(ctx context.Context, key string) bool {
	found, err := d.get(ctx, key, clientv3.WithKeysOnly())
	if err != nil || len(found.Kvs) == 0 {
		return err == nil
	}
	is := isOf(key, found.Kvs[0].CreateRevision)
	_, _, err = d.commit(ctx, &transaction{when: []clientv3.Cmp{is}, then: []clientv3.Op{clientv3.OpDelete(key)}})
	return err == nil
}

// refused finds out why the transaction has not created the key: an earlier copy has, the request is over, or something
// is in the way.
func (a *attempt) refused(ctx context.Context, s *session, answer *clientv3.TxnResponse) error {
	e := a.e
	if kvs := kvsOf(answer.Responses[0]); len(kvs) > 0 { // an earlier copy has created it
		p, err := queueKeyOf(kvs[0])
		switch {
		case err != nil:
			return err
		case p.session != s.id: // of an earlier session, with which it ends
			return lost(e.r.Key, p.token(), driver.LostSession, nil)
		}
		a.given() // in the same step as that copy
		// That copy may have had to wait. Then a waiter behind it watches its key until it is rewritten, which hold
		// must do even if nothing is in the way by now.
		a.waits()
		// The empty view makes run read the queue: what stood before that copy may have left since.
		a.own(p.revision, queueView{})
		return nil
	}
	if len(kvsOf(answer.Responses[1])) > 0 {
		return errReleased(e.r.Key)
	}
	switch {
	case a.r.Try:
		first, err := queueKeysOf(kvsOf(answer.Responses[2]))
		if err != nil {
			return err
		}
		if len(first) > 0 {
			return a.isHeld(ctx, &first[0])
		}
	case a.r.Kind == driver.KindSemaphore:
		return a.amongOthers(ctx, s, kvsOf(answer.Responses[2]), answer.Header.Revision)
	}
	if a.give != nil {
		return lost(e.r.Key, 0, driver.LostExpired, errNothingToGive)
	}
	return errors.New("etcd: a transaction failed although all its conditions hold")
}

// errNothingToGive is the cause of the loss when a requeue finds no hold.
var errNothingToGive = errors.New("etcd: the hold to be given back is over")

// queued records that the key was created, and what was read of the queue.
func (a *attempt) queued(ctx context.Context, revision int64, reads []*pb.ResponseOp) error {
	a.own(revision, queueView{})
	return a.judge(ctx, reads, revision)
}

// own records the request's key and what the queue means for it.
func (a *attempt) own(revision int64, view queueView) {
	a.d.mu.Lock()
	defer a.d.mu.Unlock()
	a.e.revision, a.e.view = revision, view
}

// judge records what was read of the queue, as of the revision asOf. All reads of one transaction are of one revision,
// so they cannot contradict each other.
func (a *attempt) judge(ctx context.Context, reads []*pb.ResponseOp, asOf int64) error {
	var ahead []queueKey
	for _, read := range reads {
		keys, err := queueKeysOf(kvsOf(read))
		if err != nil {
			return err // the caller undoes the request
		}
		for _, p := range keys {
			if len(ahead) == 0 || ahead[len(ahead)-1].key != p.key { // the first may be the last
				ahead = append(ahead, p)
			}
		}
	}
	view := judge(a.r.Kind, recordOf(a.r), ahead, a.d.names.queuePrefix(a.r.Key))
	view.revision = asOf
	view.second = len(ahead) == 1 && len(reads) == 2 // one read alone is of the nearest
	view.next = view.second || len(ahead) == 1 && !onlyOne(a.r.Kind)
	if view.conflict != 0 {
		return a.conflict(ctx, view.conflict)
	}
	a.own(a.e.revision, view)
	return nil
}

// conflict removes the key, and says that the semaphore has another limit. Only beside keys of earlier versions can
// that be so: the first of those may leave when the next has another limit, and is about to remove its key.
func (a *attempt) conflict(ctx context.Context, limit int) error {
	e := a.e
	t := &transaction{
		when: []clientv3.Cmp{isOf(e.queueKey, e.revision)},
		then: []clientv3.Op{clientv3.OpDelete(e.queueKey)},
	}
	if _, _, err := a.d.commit(ctx, t); err != nil {
		return err
	}
	a.own(0, queueView{})
	return errConflict(e.r, limit)
}

// kvsOf returns what one operation of a transaction has read.
func kvsOf(r *pb.ResponseOp) []*mvccpb.KeyValue {
	return r.GetResponseRange().GetKvs()
}
