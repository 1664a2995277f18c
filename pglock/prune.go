// Removal of rows that nobody needs any more. sqlsession has a shared connection call Prune, after some grants and from
// time to time.

package pglock

import (
	"fmt"
	"math/rand/v2"
)

// windowOf returns an expression for the rows that are old among a thousand that follow each other in the table's
// primary key: from a random place on, and from the beginning after the end. So a look costs the same however many rows
// there are, and clients that look need not know of each other. it is the column that is collected, old the condition,
// key the columns of the primary key, and from the values at which to begin.
func windowOf(table, it, old, key, from string) string {
	part := func(side string) string {
		return fmt.Sprintf(`(SELECT %s AS it, %s AS old FROM %s WHERE (%s) %s (%s) ORDER BY %[4]s LIMIT 1000)`, it, old,
			table, key, side, from)
	}
	return `ARRAY(SELECT it FROM (` + part(">=") + ` UNION ALL ` + part("<") + ` LIMIT 1000) w WHERE old)`
}

// anyPid is a random number up to the largest process number in a table, as a place to begin.
func anyPid(table string) string {
	return `WITH a AS MATERIALIZED (SELECT (random() * coalesce(max(pid), 0))::int AS pid FROM ` + table + `) `
}

// A token is the clock in microseconds, so 86400000000 is a day of them. Rows of waits have no time; they are old when
// their process is gone.
const (
	oldLock   = `NOT collided AND last < (extract(epoch FROM clock_timestamp()) * 1000000)::bigint - 86400000000`
	oldReader = `since < now() - interval '1 day'`
	oldWait   = `pid NOT IN (SELECT pid FROM pg_stat_activity WHERE pid IS NOT NULL)`
	oldBreak  = `asked < now() - interval '1 day'`
)

// pruneTexts remove what nobody needs any more. $1 is where to begin. Each asks once more whether the row is old as it
// is when it is removed, because the window was read from an earlier snapshot.
var pruneTexts = []string{
	// Rows of locks that nobody has used for a day. Their tokens are so far behind the clock that the next one is
	// larger without them. A client that has got such a lock meanwhile has written a new last token, so the condition
	// fails, or finds no row and takes the clock. A lock that has been held for longer than a day is in the server's
	// list, which is read only if there is an old row.
	`DELETE FROM {T} WHERE key = ANY(` + windowOf("{T}", "key", oldLock, "key", "$1::bigint") + `) AND ` + oldLock + `
		AND key NOT IN (SELECT ` + number + ` FROM pg_locks l WHERE ` + ours + `)`,

	// Readers of long ago that hold no lock. Their age counts as well, because a reader may have come since the list of
	// locks was read.
	anyPid("{T}_readers") + `DELETE FROM {T}_readers
		WHERE ctid = ANY(` + windowOf("{T}_readers", "ctid", oldReader, "pid, key", "(SELECT pid FROM a), $1::bigint") +
		`) AND ` + oldReader + `
		AND (pid, key) NOT IN (SELECT l.pid, ` + number + ` FROM pg_locks l WHERE l.pid IS NOT NULL AND ` + ours + `)`,

	// Waits of sessions that have ended. The condition on $1 is always true: it is there so that the statement has the
	// same parameter as the others.
	anyPid("{T}_waits") + `DELETE FROM {T}_waits
		WHERE $1::bigint IS NOT NULL AND ctid = ANY(` +
		windowOf("{T}_waits", "ctid", oldWait, "pid", "SELECT pid FROM a") + `) AND ` + oldWait,

	// Breaks that no client has answered in a day. Their sessions are gone, or their tokens are nobody's any more.
	anyPid("{T}_breaks") + `DELETE FROM {T}_breaks
		WHERE ctid = ANY(` + windowOf("{T}_breaks", "ctid", oldBreak, "pid, key", "(SELECT pid FROM a), $1::bigint") +
		`) AND ` + oldBreak,
}

// Prune removes rows that nobody needs any more, of a window of each of the four tables. It costs four round trips.
func (s *speaker) Prune() {
	if s.d.opts.ReadOnly {
		return // those who lock do it
	}
	from := int8Value(int64(rand.Uint64()))
	for _, text := range pruneTexts {
		if _, err := s.query(s.d.text(text), from); err != nil {
			return // the next one does it
		}
	}
}
