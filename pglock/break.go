package pglock

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"time"

	"github.com/interlock-go/interlock/driver"
)

const (
	breakFirst = 2 * time.Millisecond
	breakMost  = 100 * time.Millisecond
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
			return breakError(ctx, key, err)
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
				return breakError(ctx, key, err)
			}
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return unavailable("break", key.Name, ctx.Err())
		}
	}
}

func breakError(ctx context.Context, key driver.Key, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return unavailable("break", key.Name, err)
}

// heardOfBreak has beat look for what is to be broken. It does not block.
func (d *Driver) heardOfBreak() {
	select {
	case d.knock <- struct{}{}:
	default: // it will look
	}
}

// askForBreaks reads what operators want of the sessions of this driver, in one statement for all.
func (d *Driver) askForBreaks() {
	var pids []int32
	d.mu.Lock()
	for c := range d.all {
		if len(c.holds) > 0 {
			pids = append(pids, c.pid)
		}
	}
	d.mu.Unlock()
	if len(pids) == 0 {
		return
	}
	d.onShared(job{
		run: func(c *conn) {
			found, err := c.query(d.text(breaksText), int4Array(pids))
			if err != nil {
				return // another time
			}
			for _, r := range found {
				d.broken(int64Of(r[0]), uint64(int64Of(r[2])))
				if _, err := c.query(d.text(brokenText), r[0], r[1], r[2]); err != nil {
					return // it does no harm: the token is nobody's any more
				}
			}
		},
		dead: func(error) {}, // another time
	})
}

// broken ends a hold on behalf of an operator. Who holds it is told before the lock is given back, so that nobody gets in
// before.
func (d *Driver) broken(num int64, token uint64) {
	d.mu.Lock()
	var e *entry
	if p := d.places[num]; p != nil {
		for _, other := range p.owners {
			if other.phase == held && other.token == token {
				e = other
			}
		}
	}
	if e == nil { // it has been released, or the row is an old one
		d.mu.Unlock()
		return
	}
	e.epitaph = epitaph{reason: driver.LostBroken, token: e.token}
	e.phase = releasing
	c, lost := e.c, e.r.Lost
	d.mu.Unlock()
	if lost != nil {
		lost(driver.LostBroken, nil)
	}
	c.submit(job{run: e.giveBack, dead: func(error) {}}) // if it has ended, the server has given it back
}
