// What operators ask for beside locks: Ask for lists, checks and breaks, findings that engines share, and breaks that
// have come.

package sqlsession

import (
	"context"
	"fmt"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// Ask runs f on a shared connection, in its goroutine, and returns its answer. It blocks until then. If ctx ends first
// it returns ctx.Err(), and f may still run. If the connection has ended before, f does not run, and the error matches
// [ErrLost]; after Close it is driver.ErrClosed.
func Ask[T any](ctx context.Context, d *Core, f func(c *Conn) (T, error)) (found T, err error) {
	type answer struct {
		found T
		err   error
	}
	if err := ctx.Err(); err != nil {
		return found, err
	}
	word := make(chan answer, 1) // buffered, so that f's goroutine is not kept when ctx has ended
	d.OnShared(Job{
		Run: func(c *Conn) {
			found, err := f(c)
			word <- answer{found, err}
		},
		Dead: func(err error) { word <- answer{err: err} },
	})
	select {
	case a := <-word:
		return a.found, a.err
	case <-ctx.Done():
		return found, ctx.Err()
	}
}

// Findings that all engines on sessions share. Their own checks and Diagnose use these.

// DiagnosisTime is how long an engine's Diagnose and its start-up check may take: a hanging server must not make its
// clients hang.
const DiagnosisTime = 8 * time.Second

// Unreachable returns the finding for a server that does not answer, with the reason.
func Unreachable(err error) driver.Finding {
	return driver.Finding{
		Check: "server", Level: driver.LevelFail, Detail: fmt.Sprintf("it does not answer: %v", err),
		Advice: "check the address, the network and the server",
	}
}

// MissingTables returns the finding of a driver that only looks and makes no tables, where the table of tokens is not
// there. Before the first lock that is well, and otherwise the name or the database is another than that of the others.
func MissingTables(table string) driver.Finding {
	return driver.Finding{
		Check: "tables", Level: driver.LevelWarn,
		Detail: fmt.Sprintf("there is no table %s, so there are no locks", table),
		Advice: "the first program that locks makes the tables, if its user may; before that see whether the " +
			"names of the database and of the table are right",
	}
}

// trips is how often the time of a round trip is taken.
const trips = 5

// CheckTrip calls ask, which makes one round trip, five times, and returns a finding with the shortest time. It is a
// warning if that is more than a tenth of Config.Timeout: signs of life could come too late. It is [Unreachable] if ask
// fails.
func (d *Core) CheckTrip(ask func() error) driver.Finding {
	f := driver.Finding{Check: "round trip", Level: driver.LevelOK}
	// The shortest of several, because the others measure what the machines did beside it.
	best := time.Duration(0)
	for range trips {
		begin := time.Now()
		if err := ask(); err != nil {
			return Unreachable(err)
		}
		if took := time.Since(begin); best == 0 || took < best {
			best = took
		}
	}
	f.Detail = fmt.Sprintf("%v, with signs of life each %v", best.Round(time.Microsecond), d.config.Signs)
	if best > d.config.Timeout/10 {
		f.Level, f.Advice = driver.LevelWarn, "ask for a longer lease"
	}
	return f
}

// Breaks: an operator's wish, which stands in the server's tables, ends a hold of this core. heartbeat.go looks now and
// then; the engine reads the rows.

// CheckBreaks triggers an early call of Dialect.ReadBreaks. An engine calls it after it has recorded a break, because
// the holder may be a connection of this core. It does not block.
func (d *Core) CheckBreaks() {
	select {
	case d.knock <- struct{}{}:
	default: // a look is due already
	}
}

// readBreaks asks what operators want, unless this core holds nothing that they could break. It asks once at a time:
// far from the server the questions would stand in line, and signs of life behind them.
func (d *Core) readBreaks() {
	if !d.reading.CompareAndSwap(false, true) {
		return
	}
	var holding []*Conn
	d.mu.Lock()
	for c := range d.all {
		if c.holdsAny() {
			holding = append(holding, c)
		}
	}
	d.mu.Unlock()
	if len(holding) == 0 {
		d.reading.Store(false)
		return
	}
	d.OnShared(Job{
		Run: func(c *Conn) {
			defer d.reading.Store(false)
			d.dialect.ReadBreaks(c, holding)
		},
		Dead: func(error) { d.reading.Store(false) }, // the next look asks
	})
}

// holdsAny reports whether a lock is held on c. The caller holds Core.mu.
func (c *Conn) holdsAny() bool {
	for e := range c.holds {
		if e.phase == held {
			return true
		}
	}
	return false
}

// Break ends the hold whose first token is token, on behalf of an operator. The holder is told before the lock is given
// back, so that nobody gets in before it knows. If there is no such hold, Break does nothing. It does not wait for the
// server.
func (d *Core) Break(lock LockID, token uint64) {
	d.mu.Lock()
	var e *Entry
	if p := d.lockStates[lock]; p != nil {
		for _, other := range p.owners {
			if other.phase == held && other.token == token {
				e = other
			}
		}
	}
	// It has been released, or the row is an old one.
	if e == nil {
		d.mu.Unlock()
		return
	}
	e.epitaph = epitaph{reason: driver.LostBroken, token: e.token}
	e.phase = releasing
	c, lost := e.c, e.Request.Lost
	d.mu.Unlock()
	if lost != nil {
		lost(driver.LostBroken, nil)
	}
	c.Submit(Job{Run: e.giveBack, Dead: func(error) {}}) // if it has ended, the server has the lock back
}
