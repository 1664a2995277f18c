// What a queue key has in it, and how it is read. wire.md has the format; everything that reads a queue comes through
// here.
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
	// hears calls; see recall.go.
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
