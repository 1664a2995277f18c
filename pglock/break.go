// Breaks: an operator's wish that a hold ends. The wish is a row in the table NAME_breaks and a notification; the
// client that holds the lock reads the row over a shared connection (ReadBreaks) and ends the hold itself.
// sqlsession/break.go decides when to read; prune.go removes rows that nobody has answered.

package pglock

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/enginekit"
	"github.com/interlock-go/interlock/enginekit/sqlsession"
)

const (
	// breakFirst and breakMost are the pauses between two looks of an operator who waits for the end of the hold: they
	// double from the first to the second.
	breakFirst = 2 * time.Millisecond
	breakMost  = 100 * time.Millisecond

	// breakPause is how often a client reads the rows without having been notified: the longest time for which a break
	// stays unseen when its notification was lost.
	breakPause = 10 * time.Second
)

// channelOf returns the channel on which breaks of this table are announced. It is a hash, because the name of a
// channel has at most 63 bytes and a table's identity may have more; a fixed form also needs no quotes in LISTEN.
func channelOf(table string) string {
	sum := sha256.Sum256([]byte(table))
	return "interlock_" + hex.EncodeToString(sum[:8])
}

const (
	// breakText leaves the row for the client whose session holds the lock, and wakes all clients that listen. The
	// notification carries nothing: it is sent on commit, so who reads the table after it finds the row. A second break
	// of the same hold overwrites the first.
	breakText = `WITH b AS (INSERT INTO {T}_breaks (key, pid, token) VALUES ($1::bigint, $2::int, $3::bigint)
		ON CONFLICT (pid, key) DO UPDATE SET token = excluded.token, asked = now())
	SELECT pg_notify($4::text, '')`

	// breaksText reads the wishes for the sessions of one client, and brokenText removes one of them. The token is part
	// of its condition: a break that has overwritten the row meanwhile stays.
	breaksText = `SELECT key, pid, token FROM {T}_breaks WHERE pid = ANY($1::int[])`
	brokenText = `DELETE FROM {T}_breaks WHERE key = $1::bigint AND pid = $2::int AND token = $3::bigint`
)

func (d *Driver) text(s string) string { return strings.ReplaceAll(s, "{T}", d.table.quoted) }

// Break leaves a row for the holder and notifies all clients. The client that has the session ends the hold, tells its
// owner, and gives the lock back; Break returns when the server lists the hold no more. The lock of a client that does
// not answer becomes free when the server ends its session, after at most the holder's timeout, and Break returns then.
//
// The session is not ended at once, because other holds are on it, which nobody has asked to break.
//
// It costs one round trip for each look, after pauses of 2 ms that double up to 100 ms, and one to leave the row. It
// returns driver.ErrNotHeld if nobody holds the lock, and a *driver.HeldError if another token does. When ctx ends it
// returns the error of ctx; the holder may obey after that.
func (d *Driver) Break(ctx context.Context, key driver.Key, token uint64) error {
	var asked *record
	for pause := breakFirst; ; pause = min(2*pause, breakMost) {
		holders, num, err := d.holders(ctx, key)
		switch {
		case err != nil && d.isUnused(ctx, err):
			return driver.ErrNotHeld
		case err != nil:
			return d.breakError(ctx, key, err)
		}
		if asked != nil {
			if !slices.ContainsFunc(holders, func(r record) bool {
				return r.heldBy == asked.pid &&
					r.token == asked.token
			}) {
				return nil
			}
		} else if asked, err = whom(key, holders, token); err != nil {
			return err
		} else if asked != nil {
			// The row is written once: asked stays set, and from then on only its disappearance from the list is waited
			// for.
			if _, err := d.query(ctx, d.text(breakText), int8Value(num), int4Value(asked.pid),
				int8Value(int64(asked.token)), []byte(d.channel)); err != nil {
				return d.breakError(ctx, key, err)
			}
		}
		if !enginekit.Pause(ctx, pause) {
			return d.core.Unavailable("break", key.Name, ctx.Err())
		}
	}
}

// whom returns the holder who has the token. It returns nil without an error while one of the holders has taken the
// lock and has not yet written its row: that one may have the token, so the caller looks again.
func whom(key driver.Key, holders []record, token uint64) (*record, error) {
	if len(holders) == 0 {
		return nil, driver.ErrNotHeld
	}
	all := true
	for _, r := range holders {
		if r.isHolders() && r.token <= token && token <= r.last {
			return &r, nil
		}
		all = all && r.isHolders()
	}
	if all {
		return nil, heldError(key, holders)
	}
	return nil, nil //nolint:nilnil // the caller looks again
}

// breakError gives an error of the caller's context as it is, and every other one as driver.ErrUnavailable.
func (d *Driver) breakError(ctx context.Context, key driver.Key, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return d.core.Unavailable("break", key.Name, err)
}

// ReadBreaks reads the wishes for all sessions of this driver that hold something, in one statement, which costs one
// round trip.
func (x dialect) ReadBreaks(c *sqlsession.Conn, holding []*sqlsession.Conn) {
	var pids []int32
	for _, holder := range holding {
		pids = append(pids, session(holder).pid)
	}
	session(c).readBreaks(pids)
}

// readBreaks ends the holds that were asked for. The hold is told before the row is removed: in the other order a
// client that dies in between has removed a wish which nobody has obeyed.
func (s *speaker) readBreaks(pids []int32) {
	found, err := s.query(s.d.text(breaksText), int4Array(pids))
	if err != nil {
		return // the next look reads them
	}
	for _, r := range found {
		s.d.core.Break(lockOf(int64Of(r[0])), uint64(int64Of(r[2])))
		if _, err := s.query(s.d.text(brokenText), r[0], r[1], r[2]); err != nil {
			return // the row stays and does no harm: no hold has that token any more
		}
	}
}
