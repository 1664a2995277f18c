// Showing a hold as retained, and looking whether others wait. The scheduler calls Renew; recall.go hears calls.

package etcdlock

import (
	"context"
	"errors"
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
