package pglock

import (
	"context"
	"errors"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// record is a row of the table, and which session has its lock at the moment.
type record struct {
	key                  driver.Key
	token, last          uint64
	owner, client, label string
	since                time.Time
	pid, heldBy          int32
	collided             bool
}

// readRecord reads an answer to stmtLook. Without a row, or without a holder, the lock is free.
func readRecord(r [][]byte) record {
	return record{
		key:   driver.Key{Kind: driver.Kind(r[0]), Name: string(r[1])},
		token: uint64(int64Of(r[2])), last: uint64(int64Of(r[3])), owner: string(r[4]), client: string(r[5]), label: string(r[6]),
		since: timeOf(r[7]), pid: int32Of(r[8]), collided: boolOf(r[9]), heldBy: int32Of(r[10]),
	}
}

// isHolders reports that the row is the holder's: another session may have got the lock just now, and not have written yet.
func (r *record) isHolders() bool { return r.heldBy != 0 && r.heldBy == r.pid }

// heldError says who is in the way of key.
func (r *record) heldError(key driver.Key) *driver.HeldError {
	held := &driver.HeldError{Kind: key.Kind, Name: key.Name}
	if r.key == key && r.isHolders() {
		held.Owner, held.Client, held.Token, held.Since = r.owner, r.client, r.token, r.since
	}
	return held
}

// look reads one number.
func (s *speaker) look(num int64) (r record, err error) {
	found, err := s.exec(stmtLook, int8Value(num))
	if err == nil && len(found) == 1 {
		r = readRecord(found[0])
	}
	return r, err
}

// mostProbes is more than there will ever be: a collision of two names has a probability of one in 10^19 for each pair.
const mostProbes = 64

// current reads one lock, under the number that is its own.
func (d *Driver) current(ctx context.Context, key driver.Key) (r record, num int64, err error) {
	for probe := range mostProbes {
		num = d.hash(d.opts.Table, key, probe)
		r, err = ask(ctx, d, func(s *speaker) (record, error) { return s.look(num) })
		if err != nil || r.key == key || !r.collided {
			if r.key != key {
				r = record{}
			}
			return r, num, err
		}
	}
	return record{}, 0, errors.New("too many names have the same number")
}
