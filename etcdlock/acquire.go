// Acquire: one request from the first question to the grant. wait.go waits behind others, entry.go keeps what the
// driver knows of the request; hold makes it a hold.
//
// The walk has four steps: enqueue (the key), look (the queue), await (a wake-up), hold (the grant). A step leaves its
// result in the entry and nowhere else. So an Acquire whose context has ended leaves a request that the next Acquire of
// the same ID takes up (Traits.Resumes), and nothing on the servers depends on the goroutine that asked.

package etcdlock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/interlock-go/interlock/driver"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// attempt is one Acquire or Requeue under way. It has the entry's turn, so only one goroutine works on the request at a
// time.
type attempt struct {
	d      *Driver
	e      *entry
	r      *driver.Request
	give   *giving // a hold that is given back in the same step; nil if there is none
	unsure bool    // some request of this attempt, or of one before it, was left without an answer
	told   string  // the key of the holder that the caller was told of last
}

// Acquire puts a key into the lock's queue, and blocks until no key before it is in its way. A wait survives broken
// connections and changes of the leader. If the session ends, the wait ends too, with an error that matches
// driver.ErrLost: its key is gone. After any error that is not definite, the caller must undo the request with Release.
//
// It costs one transaction if nothing is in the way. Otherwise it costs two reads more: one when the watch has begun,
// and one after the wake-up, which sees whether the session still lives and the lock is ours.
func (d *Driver) Acquire(ctx context.Context, r *driver.Request) (driver.Grant, error) {
	return d.acquire(ctx, r, nil)
}

// acquire acquires r, and gives back the hold give in the same step if that is not nil.
func (d *Driver) acquire(ctx context.Context, r *driver.Request, give *giving) (driver.Grant, error) {
	if err := servable(r); err != nil {
		return driver.Grant{}, err
	}
	bounded, leave, err := d.enterCall(ctx)
	if err != nil {
		return driver.Grant{}, err
	}
	defer leave()
	e, err := d.enterTurn(bounded, r)
	if err != nil {
		return driver.Grant{}, err
	}
	defer e.yield()
	a := &attempt{d: d, e: e, r: r, give: give, unsure: e.mayBeMade()}
	if err := a.run(bounded); err != nil {
		d.drop(e) // it stays if anything may be left of it
		return driver.Grant{}, a.explain(ctx, err)
	}
	return e.grant(), nil
}

// maxName is the longest name of a lock, in bytes. Package driver allows names of that length on every engine.
const maxName = 512

// servable refuses what can never be granted, before anything is sent. Each error matches driver.ErrUnsupported.
func servable(r *driver.Request) error {
	switch {
	case !slices.Contains(kinds, r.Kind):
		return fmt.Errorf("etcd: locks of kind %q: %w", r.Kind, driver.ErrUnsupported)
	case r.Named:
		return fmt.Errorf("etcd: named owners: a key belongs to one lease: %w", driver.ErrUnsupported)
	case r.Mode > driver.Upgradeable,
		onlyOne(r.Kind) && r.Mode != driver.Exclusive,
		r.Kind == driver.KindSemaphore && r.Mode == driver.Upgradeable:
		return fmt.Errorf("etcd: mode %d of a %s: %w", r.Mode, r.Kind, driver.ErrUnsupported)
	case r.Kind == driver.KindSemaphore && (r.Limit < 1 || r.Mode == driver.Shared &&
		(r.Weight < 1 || r.Weight > r.Limit)):
		return fmt.Errorf("etcd: %d permits of %d: %w", r.Weight, r.Limit, driver.ErrUnsupported)
	case r.Name == "" || len(r.Name) > maxName:
		return fmt.Errorf("etcd: a lock's name has 1 to %d bytes, not %d: %w", maxName, len(r.Name),
			driver.ErrUnsupported)
	}
	return nil
}

// run takes one step after the other until the request is granted or refused. What the next step is depends only on the
// entry, so an Acquire that comes back to a request goes on where the last one left it.
func (a *attempt) run(ctx context.Context) error {
	e := a.e
	for {
		err := e.whyOver()
		if err != nil {
			return err
		}
		switch {
		case e.isGranted():
			return nil
		// The key is not in the queue yet.
		case e.revision == 0:
			err = a.enqueue(ctx)
		// It is in the queue, and the queue was not read yet.
		case e.view.revision == 0:
			err = a.look(ctx)
		case e.view.granted:
			err = a.hold(ctx)
		// Somebody is in the way.
		default:
			a.tell()
			err = a.await(ctx)
		}
		if err != nil {
			return err
		}
	}
}

// isGranted reports whether the request is a hold.
func (e *entry) isGranted() bool {
	e.d.mu.Lock()
	defer e.d.mu.Unlock()
	return e.granted
}

// grant describes the hold. Its lease is the session's: trust counts from the last answered sign of life, whose instant
// Session tells. The caller has the turn, and e is granted.
func (e *entry) grant() driver.Grant {
	return driver.Grant{
		Token: e.token(), Tokens: recordOf(e.r).Tokens, Nonce: e.r.ID,
		Lease: e.session.timeout, Session: e.session,
	}
}

// hold makes the request, which nothing is in the way of, a hold. The session must still be trusted now: this process
// may have stood still since the servers answered.
func (a *attempt) hold(ctx context.Context) error {
	e, d := a.e, a.d
	// The key stays: the error is not definite, so the portable layer undoes the request.
	if e.revision > lastRevision {
		return fmt.Errorf("etcd: revision %d makes no token below 2^63: %w", e.revision, driver.ErrUnavailable)
	}
	// A semaphore's waiter that gets in writes so into its key: the request that watches it looks then.
	if e.r.Kind == driver.KindSemaphore && e.waited {
		if err := a.announce(ctx); err != nil {
			return err
		}
	}
	d.mu.Lock()
	s := e.session
	var tell func()
	switch {
	// The answer of the servers may be older than the session's end: this process may have stood still between the two.
	// Then the next owner may be inside already.
	// Likewise if it must not get any new holds; see session.go. The key ends with it.
	case s.lost != nil || s.refused.Err() != nil || !time.Now().Before(s.end()):
		e.end(driver.LostSession)
	case e.ended == "" && !e.released && !d.closed:
		e.granted = true
		// In one step with granted, under the mutex that lose takes: a session that is lost now either tells this hold
		// or is seen above.
		s.holds[e.revision] = e
		// The call came before the answer to the request.
		if s.calls[e.revision] != 0 {
			delete(s.calls, e.revision)
			tell = e.noticeCall()
		}
	}
	d.mu.Unlock()
	if tell != nil {
		tell()
	}
	return nil // run looks at what it has become
}

// tell tells the caller who is in the way, if that has changed. The key is enough to compare: one that is created anew
// stands behind the request.
func (a *attempt) tell() {
	holder := &a.e.view.holder
	if a.r.Waiting != nil && a.told != holder.key {
		a.told = holder.key
		a.r.Waiting(holder.heldError(a.r.Key))
	}
}

// explain returns the error that the caller gets for err. A refusal is only definite if no copy of the request is
// without an answer.
func (a *attempt) explain(ctx context.Context, err error) error {
	switch {
	case a.unsure && driver.IsDefinite(err) && !errors.Is(err, driver.ErrClosed):
		// Another copy of the request may have been granted, or may be yet.
		return errors.Join(&driver.UnavailableError{Op: "lock", Name: a.r.Name, Err: errCopies}, err)
	case errors.Is(err, driver.ErrLost), driver.IsDefinite(err):
		return err
	}
	if err = a.d.failure(ctx, err); errors.Is(err, driver.ErrClosed) {
		return err
	}
	// A key may be in the queue, or the hold to be given back may be over, so "not sent" would be untrue.
	return classed("lock", a.r.Name, err, a.unsure || a.give != nil || a.e.revision != 0)
}

// errCopies says why a refusal is not the last word.
var errCopies = errors.New("etcd: the request was sent more than once")

// Getting into a queue: one transaction that creates the request's key and reads who is before it. queue.go judges
// what was read; wait.go goes on.
//
// A creation is the one request that can leave something behind which its sender does not know of. Three things keep it
// from harm. Its key is named for one request at a time; it is refused if the key is there, so a copy takes nothing
// twice; and it is refused by a tomb, so a copy that comes after an undo takes nothing at all.

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

// Requeue: giving back and asking again in one transaction.
//
// One transaction and not two: it costs one round trip, and a process is at no moment without either the hold or a
// place in the queue.

// Requeue deletes the hold's key and puts another at the end of the queue, in one transaction, and then waits as
// Acquire does. If the hold is over, the error matches driver.ErrLost.
func (d *Driver) Requeue(ctx context.Context, give *driver.Release, r *driver.Request) (driver.Grant, error) {
	if err := requeueable(give, r); err != nil {
		return driver.Grant{}, err
	}
	// The entry, and not only its ID, is needed: the transaction compares the revision of its key.
	old := d.heldAs(holdID{give.Key, give.ID})
	if old == nil {
		return d.requeueAgain(ctx, r)
	}
	return d.acquire(ctx, r, &giving{old, give.Horizon, ""})
}

// giving is a hold that a requeue gives back.
type giving struct {
	*entry
	horizon time.Duration // of its release
	tomb    string        // refuses late copies of its request; "" if none is under way
}

// ops are the operations that give it back, for a transaction in session s that also compares its revision and deletes
// its key.
func (g *giving) ops(s *session) []clientv3.Op {
	was := g.see()
	ops := slices.Concat(g.d.servedOps(&was), g.d.answerOps(&was))
	if was.open {
		g.tomb = g.d.names.tomb(g.r.Key, g.r.ID)
		ops = append(ops, clientv3.OpPut(g.tomb, "", clientv3.WithLease(s.id)))
	}
	return ops
}

// heldAs returns the entry of a hold, or nil.
func (d *Driver) heldAs(id holdID) *entry {
	d.mu.Lock()
	defer d.mu.Unlock()
	if e := d.entries[id]; e != nil && e.granted && e.ended == "" && !e.released {
		return e
	}
	return nil
}

// requeueAgain is a requeue that finds no hold to give back. If the request is known, that has happened already. An
// earlier call has done that and then ended with its context, while the request still waits in the queue.
func (d *Driver) requeueAgain(ctx context.Context, r *driver.Request) (driver.Grant, error) {
	id := holdID{r.Key, r.ID}
	d.mu.Lock()
	e, closed := d.entries[id], d.closed
	known := e != nil && e.revision != 0 || d.gone.Has(id)
	d.mu.Unlock()
	switch {
	case closed:
		return driver.Grant{}, driver.ErrClosed
	case !known:
		return driver.Grant{}, lost(r.Key, 0, driver.LostExpired, errNothingToGive)
	}
	// The request is in the queue already, so acquiring it goes on where it stands.
	return d.Acquire(ctx, r)
}

// requeueable refuses what is not one exclusive hold for another of the same lock.
func requeueable(give *driver.Release, r *driver.Request) error {
	switch {
	case give.Key != r.Key:
		return fmt.Errorf("etcd: a requeue for another lock: %w", driver.ErrUnsupported)
	case give.Undo || r.Try || r.Mode != driver.Exclusive:
		return fmt.Errorf("etcd: such a requeue: %w", driver.ErrUnsupported)
	}
	return servable(r)
}
