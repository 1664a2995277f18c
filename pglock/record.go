// What the tables tell about the holder of a lock. break.go looks for the holder to break, try.go for the holder in the
// way.

package pglock

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// record is what the tables say of one session that has a lock.
type record struct {
	key                  driver.Key
	token, last          uint64 // the first and the last token of its block
	owner, client, label string
	since                time.Time
	pid, heldBy          int32 // pid has written the row, heldBy has the lock in the server's list or is 0
	collided             bool  // the row stays for ever, because another name has the same number
}

// readRecord reads a row of the answer to stmtLook.
func readRecord(r [][]byte) record {
	return record{
		key:   driver.Key{Kind: driver.Kind(r[0]), Name: string(r[1])},
		token: uint64(int64Of(r[2])), last: uint64(int64Of(r[3])), owner: string(r[4]), client: string(r[5]),
		label: string(r[6]),
		since: timeOf(r[7]), pid: int32Of(r[8]), collided: boolOf(r[9]), heldBy: int32Of(r[10]),
	}
}

// isHolders reports that the row is the holder's own. Another session may just have got the lock and not yet have
// written: then pid is still the one before.
func (r *record) isHolders() bool { return r.heldBy != 0 && r.heldBy == r.pid }

// heldError says who is in the way of key: the first of those who have the lock and have written their row. If nobody
// has, it names the lock alone.
func heldError(key driver.Key, holders []record) *driver.HeldError {
	held := &driver.HeldError{Kind: key.Kind, Name: key.Name}
	for _, r := range holders {
		if r.key == key && r.isHolders() {
			held.Owner, held.Client, held.Token, held.Since = r.owner, r.client, r.token, r.since
			break
		}
	}
	return held
}

// look reads who has one number, of whatever name. It costs one round trip, and the server makes the list of all its
// locks.
func (s *speaker) look(num int64) (all []record, err error) {
	found, err := s.exec(stmtLook, int8Value(num))
	for _, r := range found {
		all = append(all, readRecord(r))
	}
	return all, err
}

// mostProbes is more than there will ever be: two names have the same number with a probability of one in 10^19.
const mostProbes = 64

// holders reads who has one lock, and the number that is its own. It walks the probes as the clients do: a row of
// another name that is pinned leads on to the next, and one that is not pinned shows that nobody of this name has ever
// come by.
func (d *Driver) holders(ctx context.Context, key driver.Key) (all []record, num int64, err error) {
	for probe := range mostProbes {
		num = d.hash(d.table.identity(), key, probe)
		all, err = ask(ctx, d, func(s *speaker) ([]record, error) { return s.look(num) })
		if err != nil || len(all) == 0 {
			return nil, num, err
		}
		if all[0].key == key {
			return slices.DeleteFunc(all, func(r record) bool { return r.heldBy == 0 }), num, nil
		}
		if !all[0].collided {
			return nil, num, nil
		}
	}
	return nil, 0, errors.New("too many names have the same number")
}
