package pglock

import (
	"context"
	"fmt"
)

// createTables makes the tables that are missing. A role that may not do that can lock all the same when they are there.
func (d *Driver) createTables(ctx context.Context) error {
	for i, suffix := range []string{"", "_waits", "_breaks", "_readers"} {
		found, err := d.query(ctx, "SELECT to_regclass($1::text) IS NOT NULL", []byte(d.opts.Table+suffix))
		if err == nil && len(found) == 1 && boolOf(found[0][0]) {
			continue
		}
		if err == nil {
			err = d.createTable(ctx, createTexts[i])
		}
		if err != nil {
			return advise(err)
		}
	}
	return d.checkFormat(ctx)
}

// createTable makes a table. Two clients that do so at once are told of each other by an error about the system's own
// tables, although both said IF NOT EXISTS.
func (d *Driver) createTable(ctx context.Context, text string) error {
	for {
		_, err := d.query(ctx, d.text(text))
		switch stateOf(err) {
		case stateUnique, stateDuplicate, stateSameType:
			continue
		}
		return err
	}
}

// checkFormat refuses a table that is not ours, or of a version that this one cannot read.
func (d *Driver) checkFormat(ctx context.Context) error {
	_, err := d.query(ctx, d.text(`SELECT key, kind, name, token, last, nonce, owner, client, label, since, pid, collided FROM {T} LIMIT 0`))
	if stateOf(err) == stateNoColumn {
		return fmt.Errorf("postgres: the table %s belongs to another program or version: %w", d.opts.Table, err)
	}
	return advise(err)
}

const (
	// pruneText removes rows of locks that nobody has used for a day. Their tokens are so far behind the clock that the next is
	// larger without them. Who has got such a lock meanwhile has written a new last token, or finds no row and takes the
	// clock; and a lock that has been held for longer than a day is in the server's list.
	pruneText = `DELETE FROM {T} t USING (SELECT key, last FROM {T}
		WHERE NOT collided AND last < (extract(epoch FROM clock_timestamp()) * 1000000)::bigint - 86400000000
		AND key NOT IN (SELECT ` + number + ` FROM pg_locks l WHERE ` + ours + `) LIMIT 1000) old
	WHERE t.key = old.key AND t.last = old.last AND NOT t.collided`

	pruneWaitsText  = `DELETE FROM {T}_waits WHERE pid NOT IN (SELECT pid FROM pg_stat_activity WHERE pid IS NOT NULL)`
	pruneBreaksText = `DELETE FROM {T}_breaks WHERE asked < now() - interval '1 day'`

	// pruneReadersText looks at the age as well: a reader may have come since the list of locks was read.
	pruneReadersText = `DELETE FROM {T}_readers r WHERE since < now() - interval '1 day' AND NOT EXISTS (
		SELECT FROM pg_locks l WHERE l.pid = r.pid AND ` + ours + ` AND ` + number + ` = r.key)`
)

// Prune removes rows that nobody needs any more.
func (s *speaker) Prune() {
	for _, text := range []string{pruneText, pruneWaitsText, pruneBreaksText, pruneReadersText} {
		if _, err := s.query(s.d.text(text)); err != nil {
			return // another time
		}
	}
}
