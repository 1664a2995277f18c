package pglock

import (
	"context"
	"errors"
	"time"

	"github.com/interlock-go/interlock/enginekit/sqlsession"
	"github.com/jackc/pgx/v5/pgconn"
)

// rows are the rows of an answer, in the binary format.
type rows = [][][]byte

// background is the context of every statement; see sqlsession.Conn. It must be this very one: for others the client
// library starts a goroutine for each statement.
var background = context.Background() //nolint:forbidigo // statements never carry a caller's context

// answered takes in the end of a statement.
func (s *speaker) answered(sent time.Duration, err error) error {
	return s.c.Answered(sent, err, isBroken(err) || s.pg.IsClosed())
}

// prepare has the server read a statement once for the connection. It costs a round trip when it is first needed.
func (s *speaker) prepare(st statement) error {
	if s.prepared[st] {
		return nil
	}
	sent := s.c.Sent(s.d.opts.Timeout)
	_, err := s.pg.Prepare(background, st.String(), s.d.texts[st], nil)
	s.prepared[st] = err == nil
	return s.answered(sent, err)
}

// exec runs a prepared statement.
func (s *speaker) exec(st statement, params ...[]byte) (rows, error) {
	return s.execFor(s.d.opts.Timeout, st, params...)
}

// execFor runs one that may take as long as allowed.
func (s *speaker) execFor(allowed time.Duration, st statement, params ...[]byte) (rows, error) {
	if err := s.prepare(st); err != nil {
		return nil, err
	}
	sent := s.c.Sent(allowed)
	answer := s.pg.ExecPrepared(background, st.String(), params, binaryFormat, binaryFormat).Read()
	return answer.Rows, s.answered(sent, answer.Err)
}

// query runs a statement that is not worth preparing.
func (s *speaker) query(text string, params ...[]byte) (rows, error) {
	sent := s.c.Sent(s.d.opts.Timeout)
	answer := s.pg.ExecParams(background, text, params, nil, binaryFormat, binaryFormat).Read()
	return answer.Rows, s.answered(sent, answer.Err)
}

// line is a prepared statement and its parameters.
type line struct {
	st     statement
	params [][]byte
}

// conversation is statements that go to the server in one packet. The first is answered while the second waits.
type conversation struct {
	s      *speaker
	p      *pgconn.Pipeline
	sent   time.Duration
	unsent error // why nothing was sent
}

// say sends prepared statements. The last one may take as long as allowed. Each is a transaction of its own.
func (s *speaker) say(allowed time.Duration, lines ...line) (*conversation, error) {
	for _, l := range lines {
		if err := s.prepare(l.st); err != nil {
			return nil, err
		}
	}
	x := &conversation{s: s, sent: s.c.Sent(allowed), p: s.pg.StartPipeline(background)}
	for _, l := range lines {
		x.p.SendQueryPrepared(l.st.String(), l.params, binaryFormat, binaryFormat)
		x.p.SendPipelineSync()
	}
	x.unsent = x.p.Flush()
	return x, nil
}

// receive returns the next answer. What the server refuses is the statement's own affair; everything else ends the
// connection.
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

// end is for when all answers have been heard.
func (x *conversation) end(err error) error {
	if closed := x.p.Close(); closed != nil && isBroken(closed) && err == nil {
		err = closed
	}
	return x.s.answered(x.sent, err)
}
