package pglock

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/sqllock"
)

const (
	breakFirst = 2 * time.Millisecond
	breakMost  = 100 * time.Millisecond

	// breakPause is how long a break may go unseen if its notification was not heard.
	breakPause = 10 * time.Second
)

// channelOf is the channel on which breaks are announced. Its name is short, whatever the table's is.
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

func (d *Driver) text(s string) string { return strings.ReplaceAll(s, "{T}", d.opts.Table) }

// Break leaves a row for the holder and has the server tell all clients to look: the one whose it is tells it to whom it
// concerns, gives the lock back, and Break returns. The lock of a holder that does not answer becomes free when the server
// ends its session, and Break returns then. To end the session at once would end the other holds on it as well.
func (d *Driver) Break(ctx context.Context, key driver.Key, token uint64) error {
	var r record
	for pause := breakFirst; ; pause = min(2*pause, breakMost) {
		now, num, err := d.current(ctx, key)
		switch {
		case err != nil:
			return d.breakError(ctx, key, err)
		case r.pid != 0: // asked for before
			if now.heldBy != r.pid || now.token != r.token {
				return nil
			}
		case now.heldBy == 0:
			return driver.ErrNotHeld
		case !now.isHolders(): // it writes its row just now, and has a token then
		case token < now.token || token > now.last:
			return now.heldError(key)
		default:
			r = now
			if _, err := d.query(ctx, d.text(breakText), int8Value(num), int4Value(r.pid), int8Value(int64(r.token)), []byte(d.channel)); err != nil {
				return d.breakError(ctx, key, err)
			}
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return d.core.Unavailable("break", key.Name, ctx.Err())
		}
	}
}

func (d *Driver) breakError(ctx context.Context, key driver.Key, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return d.core.Unavailable("break", key.Name, err)
}

// ReadBreaks reads what operators want of the sessions of this driver, in one statement for all.
func (x dialect) ReadBreaks(holding []*sqllock.Conn) {
	var pids []int32
	for _, c := range holding {
		pids = append(pids, session(c).pid)
	}
	x.d.core.OnShared(sqllock.Job{
		Run:  func(c *sqllock.Conn) { session(c).readBreaks(pids) },
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
