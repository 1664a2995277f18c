// Break, by which an operator ends a hold, and the reading of a lock's queue, which inspect.go and release.go use too.
// notices.go tells the holder.
//
// A break deletes the key and leaves the lease alone: the other holds of that client go on. The notice makes the holder
// hear of it at once and with the right reason; without the notice it would take the missing key for one that somebody
// deleted.

package etcdlock

import (
	"context"

	"github.com/interlock-go/interlock/driver"
	clientv3 "go.etcd.io/etcd/client/v3"
)

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
