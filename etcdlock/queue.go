// What a queue key has in it, how it is read, and what a queue means. wire.md has the format; everything that reads a
// queue comes through here.
//
// A new field must be optional, and its absence must mean what earlier versions do: clients of several versions stand
// in one queue. What changes who has the lock needs a new format instead, which earlier versions then refuse to judge.

package etcdlock

import (
	"encoding/json"
	"fmt"

	"github.com/interlock-go/interlock/driver"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

const (
	// format is the version of what is stored. A client refuses what a newer one has written, because it cannot judge
	// it.
	format = 1

	// blockSize is how many tokens belong to a revision: token = create revision x 64 + pass. Requests that come later
	// have larger revisions, so their blocks never meet this one, however many passes there were.
	blockSize = 64

	// lastRevision is the largest revision whose tokens are all below 1<<63.
	lastRevision = 1<<57 - 1
)

// record is the value of a queue key, in JSON. Only Mode, Weight and Limit say who has the lock, together with the
// create revision of the key. The rest is for operators, for recalls, or for finding a request again.
type record struct {
	Version int    `json:"v"`
	ID      string `json:"id"`   // of the request
	Mode    string `json:"mode"` // x exclusive, s shared, u upgradeable
	Weight  int    `json:"weight,omitempty"`
	Limit   int    `json:"limit,omitempty"`
	Tokens  int    `json:"tokens"`
	Owner   string `json:"owner,omitempty"`
	Client  string `json:"client,omitempty"`
	Label   string `json:"label,omitempty"`

	// Retains says that the client may keep the lock after its owner has released it: a request that finds the lock
	// taken calls at once. Retained says that it keeps it now; there is no owner then. Listens says that the client
	// hears calls; see retained.go.
	Retains  bool `json:"retains,omitempty"`
	Retained bool `json:"retained,omitempty"`
	Listens  bool `json:"listens,omitempty"`

	// Granted is set when a waiting semaphore request was let in, so that the request that watches its key learns of
	// it.
	Granted bool `json:"granted,omitempty"`
}

// modes are the words for driver.Exclusive, Shared and Upgradeable, in that order.
var modes = [...]string{"x", "s", "u"}

// recordOf describes a request.
func recordOf(r *driver.Request) record {
	rec := record{
		Version: format, ID: r.ID, Mode: modes[r.Mode], Tokens: min(max(r.Tokens, 1), blockSize),
		Owner: r.Owner, Client: r.Client, Label: r.Label, Retains: r.Retains, Listens: r.Wanted != nil,
	}
	// Other kinds leave both at 0, so that they cost no bytes in each key.
	if r.Kind == driver.KindSemaphore {
		rec.Weight, rec.Limit = r.Weight, r.Limit
		// A writer of a semaphore takes all permits.
		if r.Mode == driver.Exclusive {
			rec.Weight = r.Limit
		}
	}
	return rec
}

// text returns the record as it is stored.
func (rec record) text() string {
	text, err := json.Marshal(rec)
	if err != nil {
		return "" // a struct of strings and numbers has no error
	}
	return string(text)
}

// queueKey is a request as the servers know it: a holder or a waiter.
type queueKey struct {
	key      string
	revision int64            // at which it was created; it orders the queue
	session  clientv3.LeaseID // whose lease it belongs to
	record   record
}

// queueKeyOf reads a queue key. An unknown format is an error, so that nothing is judged by half.
func queueKeyOf(kv *mvccpb.KeyValue) (queueKey, error) {
	p := queueKey{key: string(kv.Key), revision: kv.CreateRevision, session: clientv3.LeaseID(kv.Lease)}
	if err := json.Unmarshal(kv.Value, &p.record); err != nil {
		return p, fmt.Errorf("etcd: the value of the key %q is no record of interlock", p.key) // err quotes the value
	}
	if p.record.Version != format {
		return p, fmt.Errorf("etcd: the key %q has format %d, and this version of interlock understands %d: update it",
			p.key, p.record.Version, format)
	}
	return p, nil
}

// queueKeysOf reads queue keys, in the order in which the server gives them.
func queueKeysOf(kvs []*mvccpb.KeyValue) ([]queueKey, error) {
	all := make([]queueKey, len(kvs))
	for i, kv := range kvs {
		var err error
		if all[i], err = queueKeyOf(kv); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// token is the first token of the key's block.
func (p *queueKey) token() uint64 { return uint64(p.revision) * blockSize }

// has reports whether token belongs to the key's block.
func (p *queueKey) has(token uint64) bool {
	return token >= p.token() && token-p.token() < uint64(p.record.Tokens)
}

// weight is how many permits it takes; outside of semaphores one.
func (p *queueKey) weight() int { return max(p.record.Weight, 1) }

// heldError says that p is in the way. etcd does not keep the time at which a key was created.
func (p *queueKey) heldError(key driver.Key) *driver.HeldError {
	return &driver.HeldError{
		Kind: key.Kind, Name: key.Name, Owner: p.record.Owner, Client: p.record.Client, Token: p.token(),
		Retains: p.record.Retains,
	}
}

// What a queue means: who is in, and which key the others must watch. acquire.go and wait.go judge one request with it,
// inspect.go and inspect.go a whole queue.
//
// This decides who has a lock; lookAtPredecessor only comes to the same answer by a shorter way. It is a function of
// the queue alone, without a clock and without a memory, so all clients come to the same decision from the same
// revision. wire.md has the same rules for other programs.

// queueView is what the queue means for one request, as of a revision.
type queueView struct {
	granted  bool
	conflict int      // the limit in use, if it is another than the request's; else 0
	holder   queueKey // who has the lock, if not the request
	watch    string   // the key whose end lets the request look again
	puts     bool     // it looks again also when that key is rewritten
	wide     bool     // watch is a prefix
	keep     bool     // the events are wanted, not only the hint
	revision int64    // as of which all this holds; 0 before the first look

	// Of a mutex only; see lookAtPredecessor.
	predecessor queueKey // the queue key right before the request's own, which is watched
	second      bool     // there was no other one

	next bool // the holder alone is before the request
}

// crowd is what counts of the queue keys before a request, holders and waiters, when it is decided whether the request
// is in. The zero value is the crowd before the first.
type crowd struct {
	size         int
	limit, taken int // of a semaphore: the limit of the first, and the permits of all that have the same

	writer, upgradeable bool // there is one
}

// add adds the next request of the queue.
//
// The first in the queue says what a semaphore's limit is. All others have the same, unless there are keys of earlier
// versions: there a request with another limit is about to remove its key again, and does not count.
func (c *crowd) add(r *record) {
	if c.size == 0 {
		c.limit = r.Limit
	}
	c.size++
	if r.Limit == c.limit {
		c.taken += r.Weight
	}
	c.writer, c.upgradeable = c.writer || r.Mode == "x", c.upgradeable || r.Mode == "u"
}

// admits reports whether a request behind the crowd is in.
//
// For a mutex and a read/write lock the position alone decides: nothing conflicting stands before the request. So a
// waiting writer keeps out the readers behind it, and nothing has to be written when a request gets in. A request for
// permits is in if it fits beside all before it.
func (c *crowd) admits(k driver.Kind, r *record) bool {
	switch {
	case c.size == 0:
		return true
	case onlyOne(k):
		return false
	case k == driver.KindSemaphore:
		return r.Limit == c.limit && c.taken+r.Weight <= c.limit
	}
	return !c.writer && r.Mode != "x" && !(c.upgradeable && r.Mode == "u")
}

// split tells holders from waiters, by the rule with which each request judges itself. A rule of its own here would
// show operators, or break, another holder than the waiters see.
func split(k driver.Kind, queue []queueKey) (holders, waiters []queueKey) {
	var before crowd
	for i := range queue {
		p := &queue[i]
		if before.admits(k, &p.record) {
			holders = append(holders, *p)
		} else {
			waiters = append(waiters, *p)
		}
		before.add(&p.record)
	}
	return holders, waiters
}

// judge says what the queue keys before a request mean for it. They are in the order of the queue; of a mutex, the
// first of all and the nearest are enough. prefix is what they all begin with.
//
// A waiter of a mutex or a read/write lock watches the nearest key in its way, which as a rule ends last of all. So a
// release wakes one waiter.
func judge(k driver.Kind, mine record, ahead []queueKey, prefix string) queueView {
	var before crowd
	for i := range ahead {
		before.add(&ahead[i].record)
	}
	switch {
	case before.admits(k, &mine):
		return queueView{granted: true}
	case k == driver.KindSemaphore:
		return before.watchPermits(&mine, ahead, prefix)
	}
	nearest := len(ahead) - 1
	for nearest > 0 && !onlyOne(k) && !conflicts(mine.Mode, ahead[nearest].record.Mode) {
		nearest--
	}
	return queueView{holder: ahead[0], watch: ahead[nearest].key, predecessor: ahead[nearest]}
}

// conflicts reports whether requests of these modes cannot be inside together: a writer with nothing, upgradeable
// readers not with each other.
func conflicts(a, b string) bool {
	return a == "x" || b == "x" || a == "u" && b == "u"
}

// watchPermits says what a request watches that does not fit. Only the first that does not fit watches all before it.
// Everybody behind it watches its predecessor, which rewrites its key when it gets in. Otherwise each release would
// wake all waiters.
func (c *crowd) watchPermits(mine *record, ahead []queueKey, prefix string) queueView {
	switch {
	case c.limit != mine.Limit:
		return queueView{conflict: c.limit, holder: ahead[0]}
	case c.taken <= c.limit: // all before it fit, so it is the first that does not
		return queueView{holder: ahead[0], watch: prefix, wide: true}
	default:
		return queueView{holder: ahead[0], watch: ahead[len(ahead)-1].key, puts: true}
	}
}
