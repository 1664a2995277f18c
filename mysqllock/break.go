package mysqllock

import (
	"context"
	"encoding/hex"
	"fmt"
	"strconv"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/enginekit"
	"github.com/interlock-go/interlock/enginekit/sqlsession"
)

const (
	breakFirst = 5 * time.Millisecond
	breakMost  = 100 * time.Millisecond

	// breakPause is how long a break may go unseen.
	breakPause = time.Second
)

// Break leaves a row for the holder, which he finds within a second and a half if he lives: he tells it to whom it
// concerns, gives the lock back, and Break returns. The lock of a holder that does not answer becomes free when the
// server ends his session, and Break returns then. To end the session at once would end the other holds on it as well.
func (d *Driver) Break(ctx context.Context, key driver.Key, token uint64) error {
	r, err := d.current(ctx, key)
	switch {
	case err != nil:
		return err
	case r.heldBy == 0:
		return driver.ErrNotHeld
	case r.heldBy != r.session || token < r.token || token > r.last:
		held := &driver.HeldError{Kind: key.Kind, Name: key.Name}
		if r.heldBy == r.session {
			held.Owner, held.Client, held.Token, held.Since = r.owner, r.client, r.token, r.since
		}
		return held
	}
	id := d.idOf(key).hex()
	if _, err := d.ask(ctx, fmt.Sprintf("INSERT INTO %s_breaks (id, token, session, asked) VALUES (x'%s', %d, %d, %s) "+
		"ON DUPLICATE KEY UPDATE token = VALUES(token), session = VALUES(session), asked = VALUES(asked)",
		d.opts.Table, id, r.token, r.session, clock)); err != nil {
		return d.breakError(ctx, key, err)
	}
	d.core.CheckBreaks() // the holder may be this client
	for pause := breakFirst; ; pause = min(2*pause, breakMost) {
		now, err := d.current(ctx, key)
		if err != nil {
			return err
		}
		if now.heldBy != r.session || now.session != r.session || now.token != r.token {
			return nil
		}
		if !enginekit.Pause(ctx, pause) {
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

func (d *Driver) idOf(key driver.Key) lockID {
	d.mu.Lock()
	defer d.mu.Unlock()
	return idOf(d.scope, key)
}

// current reads one lock.
func (d *Driver) current(ctx context.Context, key driver.Key) (record, error) {
	rows, err := d.ask(ctx, d.lookText(d.idOf(key)))
	switch {
	case err != nil:
		return record{}, d.breakError(ctx, key, err)
	case len(rows) == 0:
		return record{}, nil
	}
	return readRecord(rows[0]), nil
}

// ReadBreaks reads what operators want of the sessions of this driver, in one statement for all.
func (x dialect) ReadBreaks(holding []*sqlsession.Conn) {
	sessions := ""
	for _, c := range holding {
		sessions += "," + uintText(session(c).id)
	}
	x.d.core.OnShared(sqlsession.Job{
		Run:  func(c *sqlsession.Conn) { session(c).readBreaks(sessions[1:]) },
		Dead: func(error) {}, // another time
	})
}

func (s *speaker) readBreaks(sessions string) {
	rows, err := s.query(fmt.Sprintf("SELECT LOWER(HEX(id)), token FROM %s_breaks WHERE session IN (%s)",
		s.d.opts.Table, sessions))
	if err != nil {
		return // another time
	}
	for _, r := range rows {
		if id, err := hex.DecodeString(r.text(0)); err == nil && len(id) == len(lockID{}) {
			s.d.core.Break(lockID(id).core(), r.uint(1))
		}
		if s.run(fmt.Sprintf("DELETE FROM %s_breaks WHERE id = x'%s' AND token = %d", s.d.opts.Table, r.text(0),
			r.uint(1))) != nil {
			return // it does no harm: the token is nobody's any more
		}
	}
}

func uintText(n uint64) string { return strconv.FormatUint(n, 10) }
