// What operators see and do: listing locks, a look at one, and Break. queue.go judges who holds.
//
// Listings are for people. They take no part in the queue, write nothing, and judge holders by the rule of the waiters.
// A page's revision may be compacted before the next page is read; then the listing ends with an error and not with a
// mixture.

package etcdlock

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/interlock-go/interlock/driver"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// pageSize is how many keys are read at once.
const pageSize = 500

// Locks reads all keys of the locks whose names start with prefix, in pages, as of one revision for each kind. etcd
// keeps no instants, so there is no Since and no Until. A lock with a key that cannot be read is marked
// (driver.LockInfo.Unreadable); a key that belongs to no lock is passed over.
func (d *Driver) Locks(ctx context.Context, prefix string) iter.Seq2[driver.LockInfo, error] {
	return func(yield func(driver.LockInfo, error) bool) {
		bounded, leave, err := d.enterCall(ctx)
		if err != nil {
			yield(driver.LockInfo{}, d.sorted(ctx, "list", prefix, err))
			return
		}
		defer leave()
		for _, kind := range kinds {
			l := &listing{d: d, kind: kind, yield: func(info driver.LockInfo, unread error) bool {
				if unread != nil {
					info.Unreadable = unreadable
				}
				return yield(info, nil)
			}}
			// The names are escaped in keys, so the prefix is.
			more, err := l.run(bounded, d.names.kind(kind)+escape(prefix))
			if err != nil {
				yield(driver.LockInfo{}, d.sorted(ctx, "list", prefix, err))
				return
			}
			if !more {
				return
			}
		}
	}
}

// unreadable is all that a listing says of a lock that cannot be read.
const unreadable = "a key in its queue was written by another program, or by a later version of interlock"

// listing yields the locks of one kind.
type listing struct {
	d     *Driver
	kind  driver.Kind
	yield func(info driver.LockInfo, unread error) bool

	name   string     // the lock whose keys are being gathered
	queue  []queueKey // its keys so far, in the order of their names
	unread error      // why one of them cannot be read, so that nobody can tell who has the lock
}

// run handles all keys that begin with key, and reports whether to go on. The first page fixes the revision; the others
// read as of it.
func (l *listing) run(ctx context.Context, key string) (more bool, err error) {
	end := clientv3.GetPrefixRangeEnd(key)
	for revision := int64(0); ; {
		page, err := l.d.get(ctx, key, clientv3.WithRange(end), clientv3.WithLimit(pageSize),
			clientv3.WithRev(revision))
		if err != nil {
			return false, err
		}
		for _, kv := range page.Kvs {
			if !l.take(kv) {
				return false, nil
			}
		}
		if !page.More {
			return l.flush(), nil
		}
		revision = page.Header.Revision
		// The next page begins right after the last key: nothing sorts between a key and the same with a zero byte.
		key = string(page.Kvs[len(page.Kvs)-1].Key) + "\x00"
	}
}

// take handles one key, and reports whether to go on. The keys of one lock come one after the other, because they are
// read in order.
func (l *listing) take(kv *mvccpb.KeyValue) (more bool) {
	name, err := l.d.names.parse(l.kind, string(kv.Key))
	if err != nil {
		return true // it stands in no lock's queue
	}
	if name != l.name && !l.flush() {
		return false
	}
	p, err := queueKeyOf(kv)
	l.name, l.queue, l.unread = name, append(l.queue, p), cmp.Or(l.unread, err)
	return true
}

// flush yields the lock whose keys are complete, and reports whether to go on.
func (l *listing) flush() (more bool) {
	if len(l.queue) == 0 {
		return true
	}
	// Keys come in the order of their names; the queue is in that of their creation.
	slices.SortFunc(l.queue, func(a, b queueKey) int { return cmp.Compare(a.revision, b.revision) })
	info := driver.LockInfo{Kind: l.kind, Name: strings.Clone(l.name)}
	if unread := l.unread; unread != nil {
		l.queue, l.unread = nil, nil
		return l.yield(info, unread)
	}
	holders, waiters := split(l.kind, l.queue)
	switch l.kind {
	case driver.KindMutex, driver.KindElection:
		info.Limit = 1
	case driver.KindSemaphore:
		info.Limit = l.queue[0].record.Limit
	default:
	}
	for _, p := range holders {
		info.Holders = append(info.Holders, driver.Holder{
			Owner: p.record.Owner, Client: p.record.Client, Label: p.record.Label,
			Token: p.token(), Weight: p.weight(), Shared: p.record.Mode != "x",
			Retained: p.record.Retained,
		})
	}
	for i, p := range waiters {
		info.Waiters = append(info.Waiters, driver.Waiter{
			Owner: p.record.Owner, Client: p.record.Client, Label: p.record.Label,
			Weight: p.weight(), Shared: p.record.Mode != "x", Position: i + 1,
		})
	}
	l.queue = nil
	return l.yield(info, nil)
}

// An operator's question about one lock must not cost a reading of all locks, which is why it is not Locks with a
// filter.

var _ driver.Looker = (*Driver)(nil)

// Look reads the keys of one lock as of one revision, in one round trip unless there are more than 500.
func (d *Driver) Look(ctx context.Context, key driver.Key) (driver.LockInfo, error) {
	found := driver.LockInfo{Kind: key.Kind, Name: key.Name}
	if !slices.Contains(kinds, key.Kind) {
		return found, fmt.Errorf("etcd: locks of kind %q: %w", key.Kind, driver.ErrUnsupported)
	}
	bounded, leave, err := d.enterCall(ctx)
	if err != nil {
		return found, d.sorted(ctx, "look at", key.Name, err)
	}
	defer leave()
	var unread error
	l := &listing{d: d, kind: key.Kind, yield: func(info driver.LockInfo, err error) bool {
		found, unread = info, err
		return true
	}}
	// A lock's keys are listed as in Locks. There is only one lock here, so yield is called at most once.
	_, err = l.run(bounded, d.names.queuePrefix(key))
	// Without an error a lock that cannot be read would look as if it were free.
	if err := cmp.Or(err, unread); err != nil {
		return found, d.sorted(ctx, "look at", key.Name, err)
	}
	return found, nil
}

// Break, by which an operator ends a hold, and the reading of a lock's queue, which release.go uses too. notices.go
// tells the holder.
//
// A break deletes the key and leaves the lease alone: the other holds of that client go on. The notice makes the holder
// hear of it at once and with the right reason; without the notice it would take the missing key for one that somebody
// deleted.

// Break deletes the key of the hold that has the given token, and leaves a notice for its holder, in one transaction.
// It costs two round trips. It returns driver.ErrNotHeld if nobody holds the lock, and a *driver.HeldError if the token
// is not a current one.
func (d *Driver) Break(ctx context.Context, key driver.Key, token uint64) error {
	bounded, leave, err := d.enterCall(ctx)
	if err != nil {
		return err
	}
	defer leave()
	// Again if the lock has changed between the read and the transaction.
	for {
		again, err := d.breakHold(bounded, key, token)
		switch {
		case err != nil:
			return d.sorted(ctx, "break", key.Name, err)
		case !again:
			return nil
		}
	}
}

// breakHold breaks the hold that has the token. It reports again if the lock has changed since it was read.
func (d *Driver) breakHold(ctx context.Context, key driver.Key, token uint64) (again bool, err error) {
	queue, err := d.queue(ctx, key)
	if err != nil {
		return false, err
	}
	holders, _ := split(key.Kind, queue)
	if len(holders) == 0 {
		return false, driver.ErrNotHeld
	}
	for _, p := range holders {
		if !p.has(token) {
			continue
		}
		answer, doubtful, err := d.commit(ctx, &transaction{
			// Only this key: a later one of the same name has another create revision.
			when: []clientv3.Cmp{isOf(p.key, p.revision)},
			then: []clientv3.Op{
				clientv3.OpDelete(p.key),
				clientv3.OpDelete(d.names.call(p.session, p.revision)),
				clientv3.OpPut(d.names.notice(p.session, p.revision), "", clientv3.WithLease(p.session)),
			},
		})
		if err != nil && !isGone(err) {
			return false, err
		}
		// The key is gone now; with isGone its session has ended meanwhile. If a copy without an answer has deleted it,
		// that is as good.
		return (err != nil || !answer.Succeeded) && !doubtful, nil
	}
	return false, holders[0].heldError(key)
}

// queue reads a lock's queue, the first key first.
func (d *Driver) queue(ctx context.Context, key driver.Key) ([]queueKey, error) {
	found, err := d.get(ctx, d.names.queuePrefix(key), clientv3.WithPrefix(),
		clientv3.WithSort(clientv3.SortByCreateRevision, clientv3.SortAscend))
	if err != nil {
		return nil, err
	}
	return queueKeysOf(found.Kvs)
}
