// How statements go over the connection: prepared or not, alone or several in one packet. speaker.go, try.go and
// question.go come here; sqlsession's Conn sets the deadlines before and takes in the end after each.

package pglock

import (
	"context"
	"errors"
	"time"

	"github.com/interlock-go/interlock/enginekit/sqlsession"
	"github.com/jackc/pgx/v5/pgconn"
)

// rows are the rows of an answer, in the binary format: rows, columns, bytes. A nil column is NULL.
type rows = [][][]byte

// background is the context of every statement; see sqlsession.Conn. It must be this very one: for any other the client
// library starts a goroutine for each statement.
var background = context.Background() //nolint:forbidigo // statements never carry a caller's context

// answered reports the end of a statement to the connection. It returns err.
func (s *speaker) answered(err error) error {
	return s.c.Answered(err, isBroken(err) || s.pg.IsClosed())
}

// prepare has the server parse a statement once for the connection. It costs a round trip when the statement is first
// needed, and nothing after that.
func (s *speaker) prepare(st statement) error {
	if s.prepared[st] {
		return nil
	}
	s.c.Sent(s.d.opts.Timeout)
	_, err := s.pg.Prepare(background, st.String(), s.d.texts[st], nil)
	s.prepared[st] = err == nil
	return s.answered(err)
}

// exec runs a prepared statement in one round trip. It may take as long as the timeout; after that the connection has
// ended.
func (s *speaker) exec(st statement, params ...[]byte) (rows, error) {
	return s.execFor(s.d.opts.Timeout, st, params...)
}

// execFor runs a statement that may take as long as allowed.
func (s *speaker) execFor(allowed time.Duration, st statement, params ...[]byte) (rows, error) {
	if err := s.prepare(st); err != nil {
		return nil, err
	}
	s.c.Sent(allowed)
	answer := s.pg.ExecPrepared(background, st.String(), params, binaryFormat, binaryFormat).Read()
	return answer.Rows, s.answered(answer.Err)
}

// query runs a statement that is not worth preparing, because it is seldom run.
func (s *speaker) query(text string, params ...[]byte) (rows, error) {
	s.c.Sent(s.d.opts.Timeout)
	answer := s.pg.ExecParams(background, text, params, nil, binaryFormat, binaryFormat).Read()
	return answer.Rows, s.answered(answer.Err)
}

// line is a prepared statement and its parameters.
type line struct {
	st     statement
	params [][]byte
}

// conversation is statements that go to the server in one packet. The server answers the first while the second waits.
type conversation struct {
	s      *speaker
	p      *pgconn.Pipeline
	unsent error // why nothing was sent
}

// say sends prepared statements. The last one may take as long as allowed. A sync after each makes it a transaction of
// its own: so the first is committed, and seen by operators, while the second waits.
func (s *speaker) say(allowed time.Duration, lines ...line) (*conversation, error) {
	for _, l := range lines {
		if err := s.prepare(l.st); err != nil {
			return nil, err
		}
	}
	s.c.Sent(allowed)
	x := &conversation{s: s, p: s.pg.StartPipeline(background)}
	for _, l := range lines {
		x.p.SendQueryPrepared(l.st.String(), l.params, binaryFormat, binaryFormat)
		x.p.SendPipelineSync()
	}
	x.unsent = x.p.Flush()
	return x, nil
}

// receive returns the next answer. An error that the server has answered with concerns that statement alone, and it is
// returned after the rest of the answer has been read; every other error ends the connection.
func (x *conversation) receive() (rows, error) {
	if x.unsent != nil {
		return nil, x.unsent
	}
	var found rows
	var refused error
	for {
		results, err := x.p.GetResults()
		if err == nil {
			switch r := results.(type) {
			case *pgconn.ResultReader:
				answer := r.Read()
				found, err = answer.Rows, answer.Err
			case *pgconn.StatementDescription: // it is prepared
			case *pgconn.PipelineSync:
				return found, refused
			default:
				err = sqlsession.ErrLost
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

// end is called when all answers have been received. It gives the connection back to single statements.
func (x *conversation) end(err error) error {
	if closed := x.p.Close(); closed != nil && isBroken(closed) && err == nil {
		err = closed
	}
	return x.s.answered(err)
}
