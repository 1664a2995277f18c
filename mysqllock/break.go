// Breaks: an operator's wish that a hold ends. The wish is a row in the table NAME_breaks, which the client that holds
// the lock reads once a second over a shared connection (ReadBreaks), because the server has no notifications.
// sqlsession/break.go decides when to read; prune.go removes rows that nobody has answered.

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
	// breakFirst and breakMost are the pauses between two looks of an operator who waits for the end of the hold: they
	// double from the first to the second.
	breakFirst = 5 * time.Millisecond
	breakMost  = 100 * time.Millisecond

	// breakPause is how long a break may go unseen.
	breakPause = time.Second
)

// Break leaves a row for the client that holds the lock, which finds it within a second and a half if it is alive. That
// client ends the hold, tells its owner, and gives the lock back, and Break returns when it sees that. The lock of a
// client that does not answer becomes free when the server ends its session, and Break returns then.
//
// The session is not ended at once, because other holds are on it, which nobody has asked to break.
//
// It costs three round trips before the first pause, and one for each further look. It returns driver.ErrNotHeld if
// nobody holds the lock, and a *driver.HeldError if the token is not the holder's or the holder has not yet written its
// row. When ctx ends it returns the error of ctx; the holder may obey after that.
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
		// The hold has ended if another session has the lock, or the same one under another token.
		if now.heldBy != r.session || now.session != r.session || now.token != r.token {
			return nil
		}
		if !enginekit.Pause(ctx, pause) {
			return d.core.Unavailable("break", key.Name, ctx.Err())
		}
	}
}

// breakError gives an error of the caller's context as it is, and every other one as driver.ErrUnavailable.
func (d *Driver) breakError(ctx context.Context, key driver.Key, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return d.core.Unavailable("break", key.Name, err)
}

// idOf returns the identity of a lock of this driver's table. It holds mu for a moment and asks the server nothing.
func (d *Driver) idOf(key driver.Key) lockID {
	d.mu.Lock()
	defer d.mu.Unlock()
	return idOf(d.scope, key)
}

// current reads one lock: the zero record if it was never used, and heldBy 0 if nobody has it. It costs one round trip.
func (d *Driver) current(ctx context.Context, key driver.Key) (record, error) {
	rows, err := d.ask(ctx, d.lookText(d.idOf(key)))
	switch {
	case d.isUnused(err):
		return record{}, nil
	case err != nil:
		return record{}, d.breakError(ctx, key, err)
	case len(rows) == 0:
		return record{}, nil
	}
	return readRecord(rows[0]), nil
}

// ReadBreaks reads the wishes for all sessions of this driver that hold something, in one statement, which costs one
// round trip.
func (x dialect) ReadBreaks(c *sqlsession.Conn, holding []*sqlsession.Conn) {
	sessions := ""
	for _, holder := range holding {
		sessions += "," + uintText(session(holder).id)
	}
	session(c).readBreaks(sessions[1:])
}

// readBreaks ends the holds that were asked for. sessions is a list of numbers with commas between. The hold is told
// before the row is removed: in the other order a client that dies in between has removed a wish which nobody has
// obeyed. The token is part of the condition of the DELETE, so a break that has overwritten the row meanwhile stays.
func (s *speaker) readBreaks(sessions string) {
	rows, err := s.query(fmt.Sprintf("SELECT LOWER(HEX(id)), token FROM %s_breaks WHERE session IN (%s)",
		s.d.opts.Table, sessions))
	if err != nil {
		return // the next look reads them
	}
	for _, r := range rows {
		if id, err := hex.DecodeString(r.text(0)); err == nil && len(id) == len(lockID{}) {
			s.d.core.Break(lockID(id).core(), r.uint(1))
		}
		if s.run(fmt.Sprintf("DELETE FROM %s_breaks WHERE id = x'%s' AND token = %d", s.d.opts.Table, r.text(0),
			r.uint(1))) != nil {
			return // the row stays and does no harm: no hold has that token any more
		}
	}
}

func uintText(n uint64) string { return strconv.FormatUint(n, 10) }
