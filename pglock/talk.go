package pglock

import (
	"errors"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// What a connection's goroutine says to the server. Nothing here is for other goroutines.

// rows are the rows of an answer, in the binary format.
type rows = [][][]byte

// owes notes that a statement is sent, which the server may take so long for.
func (c *conn) owes(allowed time.Duration) (sent time.Duration) {
	sent = c.d.clock()
	c.allowed.Store(int64(allowed))
	c.busy.Store(int64(sent))
	return sent
}

// answered takes in the end of a statement. A refusal is a sign of life too, unless it ends the session.
func (c *conn) answered(sent time.Duration, err error) error {
	c.busy.Store(0)
	switch {
	case !isBroken(err) && !c.pg.IsClosed():
		c.confirmed.Store(int64(sent))
	case c.broken == nil:
		if c.broken = err; err == nil {
			c.broken = errLost
		}
	}
	return err
}

// prepare has the server read a statement once for the connection. It costs a round trip when it is first needed.
func (c *conn) prepare(s statement) error {
	if c.prepared[s] {
		return nil
	}
	sent := c.owes(c.d.opts.Timeout)
	_, err := c.pg.Prepare(background, s.String(), c.d.texts[s], nil)
	c.prepared[s] = err == nil
	return c.answered(sent, err)
}

// exec runs a prepared statement.
func (c *conn) exec(s statement, params ...[]byte) (rows, error) {
	return c.execFor(c.d.opts.Timeout, s, params...)
}

// execFor runs one that may take as long as allowed.
func (c *conn) execFor(allowed time.Duration, s statement, params ...[]byte) (rows, error) {
	if err := c.prepare(s); err != nil {
		return nil, err
	}
	sent := c.owes(allowed)
	answer := c.pg.ExecPrepared(background, s.String(), params, binaryFormat, binaryFormat).Read()
	return answer.Rows, c.answered(sent, answer.Err)
}

// query runs a statement that is not worth preparing.
func (c *conn) query(text string, params ...[]byte) (rows, error) {
	sent := c.owes(c.d.opts.Timeout)
	answer := c.pg.ExecParams(background, text, params, nil, binaryFormat, binaryFormat).Read()
	return answer.Rows, c.answered(sent, answer.Err)
}

// ping is a sign of life.
func (c *conn) ping() {
	_, _ = c.exec(stmtPing) // if it fails, the connection has ended, and died tells everybody
}

// unlock gives a lock back, and reports whether the session had it.
func (c *conn) unlock(num int64) (had bool, err error) {
	for range interruptions {
		var r rows
		r, err = c.exec(stmtUnlock, int8Value(num))
		if err == nil {
			return len(r) == 1 && boolOf(r[0][0]), nil
		}
		if c.broken != nil || !isPassing(err) {
			break
		}
	}
	return false, err
}

// unlockIfHeld gives a lock back that the session may have. The server would complain in its log about one that it has not.
func (c *conn) unlockIfHeld(num int64) error {
	var err error
	for range interruptions {
		if _, err = c.exec(stmtUnlockIfHeld, int8Value(num)); err == nil || c.broken != nil || !isPassing(err) {
			break
		}
	}
	return err
}

// interruptions is how often a statement is run again that was cancelled. One cancellation may hit it that was meant for
// the one before, and an operator may send another.
const interruptions = 3

// conversation is two statements that go to the server in one packet. The first is answered while the second waits.
type conversation struct {
	c    *conn
	p    *pgconn.Pipeline
	sent time.Duration
}

// say sends two prepared statements. The second may take as long as allowed. Each is a transaction of its own.
func (c *conn) say(allowed time.Duration, first, second statement, a, b [][]byte) (*conversation, error) {
	for _, s := range []statement{first, second} {
		if err := c.prepare(s); err != nil {
			return nil, err
		}
	}
	x := &conversation{c: c, sent: c.owes(allowed), p: c.pg.StartPipeline(background)}
	x.p.SendQueryPrepared(first.String(), a, binaryFormat, binaryFormat)
	x.p.SendPipelineSync()
	x.p.SendQueryPrepared(second.String(), b, binaryFormat, binaryFormat)
	x.p.SendPipelineSync()
	if err := x.p.Flush(); err != nil {
		return nil, c.answered(x.sent, err)
	}
	return x, nil
}

// hear returns the next answer. What the server refuses is the statement's own affair; everything else ends the connection.
func (x *conversation) hear() (rows, error) {
	var found rows
	var refused error
	for {
		results, err := x.p.GetResults()
		if err == nil {
			switch r := results.(type) {
			case *pgconn.ResultReader:
				answer := r.Read()
				found, err = answer.Rows, answer.Err
			case *pgconn.PipelineSync:
				return found, refused
			default:
				err = errLost
			}
		}
		var said *pgconn.PgError
		switch {
		case err == nil:
		case isBroken(err) || !errors.As(err, &said) || refused != nil:
			return nil, err
		default:
			refused = err
		}
	}
}

// end is for when both answers have been heard.
func (x *conversation) end(err error) error {
	if closed := x.p.Close(); closed != nil && isBroken(closed) && err == nil {
		err = closed
	}
	return x.c.answered(x.sent, err)
}
