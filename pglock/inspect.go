// What operators see: the list of locks, from the server's own table of locks and the rows that holders and waiters
// have written. look.go asks for one of them.

package pglock

import (
	"context"
	"iter"

	"github.com/interlock-go/interlock/driver"
)

// locksText lists what the server's table of locks has of ours, holders before waiters, and waiters in the order in
// which they came. A session that has a lock and has not yet written its row is listed as a holder without a name. $1
// is the prefix of the names.
const locksText = locksHead + ` AND substring(t.name FROM 1 FOR length($1::bytea)) = $1::bytea
ORDER BY t.key, l.granted DESC, l.waitstart, l.pid`

// lookText lists the same of one lock.
const lookText = locksHead + ` AND t.name = $1::bytea AND t.kind = $2::text
ORDER BY l.granted DESC, l.waitstart, l.pid`

// locksHead takes the names of a holder from the row of the lock or, for a reader, from its own row; and those of a
// waiter from the note that it has left. Its fourth column says whether that row is the holder's own.
const locksHead = `SELECT t.kind, t.name, l.granted, CASE WHEN l.mode = 'ShareLock' THEN r.pid IS NOT NULL ELSE t.pid = l.pid END,
	coalesce(r.token, t.token), l.pid,
	CASE WHEN l.granted THEN coalesce(r.owner, t.owner) ELSE w.owner END,
	CASE WHEN l.granted THEN coalesce(r.client, t.client) ELSE w.client END,
	CASE WHEN l.granted THEN coalesce(r.label, t.label) ELSE w.label END,
	CASE WHEN l.granted THEN coalesce(r.since, t.since) ELSE l.waitstart END, l.mode = 'ShareLock'
FROM pg_locks l JOIN {T} t ON t.key = ` + number + ` LEFT JOIN {T}_waits w ON w.pid = l.pid AND w.key = t.key
LEFT JOIN {T}_readers r ON l.mode = 'ShareLock' AND r.pid = l.pid AND r.key = t.key
WHERE ` + ours

// Locks asks the server once, for all locks in one statement, which costs a round trip and a look through the server's
// whole table of locks. The list is a snapshot, except for the microseconds in which a lock changes hands. Waits that
// ask again and again, because the pool has no connection for them, are not in it. All rows are in memory before the
// first is yielded.
func (d *Driver) Locks(ctx context.Context, prefix string) iter.Seq2[driver.LockInfo, error] {
	return func(yield func(driver.LockInfo, error) bool) {
		found, err := d.query(ctx, d.text(locksText), textValue(prefix))
		if err != nil && !d.isUnused(ctx, err) {
			if ctx.Err() != nil {
				err = ctx.Err()
			} else {
				err = d.core.Unavailable("list", prefix, err)
			}
			yield(driver.LockInfo{}, err)
			return
		}
		// The rows of one lock follow each other, since the statement sorts by the lock's number.
		for len(found) > 0 {
			n := 1
			for n < len(found) && string(found[n][0]) == string(found[0][0]) &&
				string(found[n][1]) == string(found[0][1]) {
				n++
			}
			if !yield(infoOf(found[:n]), nil) {
				return
			}
			found = found[n:]
		}
	}
}

// infoOf reads the rows of one lock, of which there is at least one.
func infoOf(found rows) driver.LockInfo {
	info := driver.LockInfo{Kind: driver.Kind(found[0][0]), Name: string(found[0][1]), Limit: 1}
	for _, r := range found {
		switch {
		case !boolOf(r[2]):
			info.Waiters = append(info.Waiters, driver.Waiter{
				Owner: string(r[6]), Client: string(r[7]), Label: string(r[8]), Weight: 1, Shared: boolOf(r[10]),
				Since:    timeOf(r[9]),
				Position: len(info.Waiters) + 1,
			})
		case boolOf(r[3]):
			info.Holders = append(info.Holders, driver.Holder{
				Owner: string(r[6]), Client: string(r[7]), Label: string(r[8]), Weight: 1, Shared: boolOf(r[10]),
				Token: uint64(int64Of(r[4])), Since: timeOf(r[9]),
			})
		default:
			info.Holders = append(info.Holders, driver.Holder{ // it has the lock and has not yet written its row
				Client: "process " + pidText(r[5]), Weight: 1,
				Shared: boolOf(r[10]),
			})
		}
	}
	return info
}
