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
	breakFirst = 2 * time.Millisecond
	breakMost  = 100 * time.Millisecond

	// breakPause is how long a break may go unseen if its notification was not heard.
	breakPause = 10 * time.Second
)

// channelOf is the channel on which breaks are announced. Its name is short, whatever the table's identity is.
func channelOf(table string) string {
	sum := sha256.Sum256([]byte(table))
	return "interlock_" + hex.EncodeToString(sum[:8])
}

const (
	// breakText leaves the row that the holder reads, and has the holder look.
	breakText = `WITH b AS (INSERT INTO {T}_breaks (key, pid, token) VALUES ($1::bigint, $2::int, $3::bigint)
		ON CONFLICT (pid, key) DO UPDATE SET token = excluded.token, asked = now())
	SELECT pg_notify($4::text, '')`

	breaksText = `SELECT key, pid, token FROM {T}_breaks WHERE pid = ANY($1::int[])`
	brokenText = `DELETE FROM {T}_breaks WHERE key = $1::bigint AND pid = $2::int AND token = $3::bigint`
)

func (d *Driver) text(s string) string { return strings.ReplaceAll(s, "{T}", d.table.quoted) }

// Break leaves a row for the holder and has the server tell all clients to look: the one whose it is tells it to whom
// it concerns, gives the lock back, and Break returns. The lock of a holder that does not answer becomes free when the
// server ends its session, and Break returns then. To end the session at once would end the other holds on it as well.
func (d *Driver) Break(ctx context.Context, key driver.Key, token uint64) error {
	var asked *record
	for pause := breakFirst; ; pause = min(2*pause, breakMost) {
		holders, num, err := d.holders(ctx, key)
		if err != nil {
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

// whom returns who of the holders has the token. It is nobody yet while one of them is about to write which he has.
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
	return nil, nil //nolint:nilnil // it is looked again
}

func (d *Driver) breakError(ctx context.Context, key driver.Key, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return d.core.Unavailable("break", key.Name, err)
}

// ReadBreaks reads what operators want of the sessions of this driver, in one statement for all.
func (x dialect) ReadBreaks(holding []*sqlsession.Conn) {
	var pids []int32
	for _, c := range holding {
		pids = append(pids, session(c).pid)
	}
	x.d.core.OnShared(sqlsession.Job{
		Run:  func(c *sqlsession.Conn) { session(c).readBreaks(pids) },
		Dead: func(error) {}, // another time
	})
}

func (s *speaker) readBreaks(pids []int32) {
	found, err := s.query(s.d.text(breaksText), int4Array(pids))
	if err != nil {
		return // another time
	}
	for _, r := range found {
		s.d.core.Break(lockOf(int64Of(r[0])), uint64(int64Of(r[2])))
		if _, err := s.query(s.d.text(brokenText), r[0], r[1], r[2]); err != nil {
			return // it does no harm: the token is nobody's any more
		}
	}
}
