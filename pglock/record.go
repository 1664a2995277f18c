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
	token, last          uint64
	owner, client, label string
	since                time.Time
	pid, heldBy          int32
	collided             bool
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

// isHolders reports that the row is the holder's: another session may have got the lock just now, and not have written
// yet.
func (r *record) isHolders() bool { return r.heldBy != 0 && r.heldBy == r.pid }

// heldError says who is in the way of key: one of those who have the lock, and have written it.
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

// look reads who has one number, of whatever name.
func (s *speaker) look(num int64) (all []record, err error) {
	found, err := s.exec(stmtLook, int8Value(num))
	for _, r := range found {
		all = append(all, readRecord(r))
	}
	return all, err
}

// mostProbes is more than there will ever be: a collision of two names has a probability of one in 10^19 for each pair.
const mostProbes = 64

// holders reads who has one lock, under the number that is its own.
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
