package mysqllock

import (
	"context"
	"fmt"
	"time"

	"github.com/interlock-go/interlock/driver"
)

const (
	breakFirst = 5 * time.Millisecond
	breakMost  = 100 * time.Millisecond
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
	d.askForBreaks() // the holder may be this client
	for pause := breakFirst; ; pause = min(2*pause, breakMost) {
		now, err := d.current(ctx, key)
		if err != nil {
			return err
		}
		if now.heldBy != r.session || now.session != r.session || now.token != r.token {
			return nil
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

func (d *Driver) breakError(ctx context.Context, key driver.Key, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return unavailable("break", key.Name, err)
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

// askForBreaks reads what operators want of the sessions of this driver, in one statement for all.
func (d *Driver) askForBreaks() {
	sessions := ""
	d.mu.Lock()
	for c := range d.all {
		if c.holdsAny() {
			sessions += "," + uintText(c.id)
		}
	}
	d.mu.Unlock()
	if sessions == "" {
		return
	}
	text := fmt.Sprintf("SELECT LOWER(HEX(id)), token FROM %s_breaks WHERE session IN (%s)", d.opts.Table, sessions[1:])
	d.onShared(job{
		run: func(c *conn) {
			rows, err := c.query(text)
			if err != nil {
				return // another time
			}
			for _, r := range rows {
				d.broken(r.text(0), r.uint(1))
				if c.run(fmt.Sprintf("DELETE FROM %s_breaks WHERE id = x'%s' AND token = %d", d.opts.Table, r.text(0), r.uint(1))) != nil {
					return // it does no harm: the token is nobody's any more
				}
			}
		},
		dead: func(error) {}, // another time
	})
}

// broken ends a hold on behalf of an operator. Who holds it is told before the lock is given back, so that nobody gets in
// before.
func (d *Driver) broken(id string, token uint64) {
	d.mu.Lock()
	var e *entry
	for _, other := range d.entries {
		if other.phase == held && other.token == token && other.id.hex() == id {
			e = other
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
