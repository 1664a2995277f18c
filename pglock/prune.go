package pglock

import (
	"fmt"
	"math/rand/v2"
)

// windowOf is what it says of those that are old among a thousand rows of a table that come one after the other in its
// primary key: from any place on, and from the beginning after the end. So a look costs the same however many rows
// there are, and those who look need not know of each other.
func windowOf(table, it, old, key, from string) string {
	part := func(side string) string {
		return fmt.Sprintf(`(SELECT %s AS it, %s AS old FROM %s WHERE (%s) %s (%s) ORDER BY %[4]s LIMIT 1000)`, it, old,
			table, key, side, from)
	}
	return `ARRAY(SELECT it FROM (` + part(">=") + ` UNION ALL ` + part("<") + ` LIMIT 1000) w WHERE old)`
}

// anyPid is a number up to the largest in a table.
func anyPid(table string) string {
	return `WITH a AS MATERIALIZED (SELECT (random() * coalesce(max(pid), 0))::int AS pid FROM ` + table + `) `
}

const (
	oldLock   = `NOT collided AND last < (extract(epoch FROM clock_timestamp()) * 1000000)::bigint - 86400000000`
	oldReader = `since < now() - interval '1 day'`
	oldWait   = `pid NOT IN (SELECT pid FROM pg_stat_activity WHERE pid IS NOT NULL)`
	oldBreak  = `asked < now() - interval '1 day'`
)

// pruneTexts remove what nobody needs any more. $1 is where to begin. What is old is asked once more of the row as it
// is when it is removed.
var pruneTexts = []string{
	// Rows of locks that nobody has used for a day. Their tokens are so far behind the clock that the next is larger
	// without them. Who has got such a lock meanwhile has written a new last token, or finds no row and takes the
	// clock; and a lock that has been held for longer than a day is in the server's list, which is read if there is an
	// old row.
	`DELETE FROM {T} WHERE key = ANY(` + windowOf("{T}", "key", oldLock, "key", "$1::bigint") + `) AND ` + oldLock + `
		AND key NOT IN (SELECT ` + number + ` FROM pg_locks l WHERE ` + ours + `)`,

	// Readers of long ago. Their age counts as well: a reader may have come since the list of locks was read.
	anyPid("{T}_readers") + `DELETE FROM {T}_readers
		WHERE ctid = ANY(` + windowOf("{T}_readers", "ctid", oldReader, "pid, key", "(SELECT pid FROM a), $1::bigint") +
		`) AND ` + oldReader + `
		AND (pid, key) NOT IN (SELECT l.pid, ` + number + ` FROM pg_locks l WHERE l.pid IS NOT NULL AND ` + ours + `)`,

	// Waits of sessions that have ended. The first condition keeps the parameters the same.
	anyPid("{T}_waits") + `DELETE FROM {T}_waits
		WHERE $1::bigint IS NOT NULL AND ctid = ANY(` +
		windowOf("{T}_waits", "ctid", oldWait, "pid", "SELECT pid FROM a") + `) AND ` + oldWait,

	// Breaks that nobody has heard.
	anyPid("{T}_breaks") + `DELETE FROM {T}_breaks
		WHERE ctid = ANY(` + windowOf("{T}_breaks", "ctid", oldBreak, "pid, key", "(SELECT pid FROM a), $1::bigint") +
		`) AND ` + oldBreak,
}

// Prune removes rows that nobody needs any more, of a window of each table.
func (s *speaker) Prune() {
	from := int8Value(int64(rand.Uint64()))
	for _, text := range pruneTexts {
		if _, err := s.query(s.d.text(text), from); err != nil {
			return // another time
		}
	}
}
