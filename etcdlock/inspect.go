// Listing locks for operators. look.go lists a single one; queue_view.go judges who holds.
//
// Listings are for people. They take no part in the queue, write nothing, and judge holders by the rule of the waiters.
// A page's revision may be compacted before the next page is read; then the listing ends with an error and not with a
// mixture.

package etcdlock

import (
	"cmp"
	"context"
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
