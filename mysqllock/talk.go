// How statements go over the connection: prepared, or as text, which may be several statements. speaker.go comes here;
// sqlsession's Conn sets the deadlines before and takes in the end after each.

package mysqllock

import (
	"context"
	sqldriver "database/sql/driver"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// background is the context of every statement; see sqlsession.Conn. For any other the client library starts to watch
// it.
var background = context.Background() //nolint:forbidigo // statements never carry a caller's context

// answered reports the end of a statement to the connection. It returns err.
func (s *speaker) answered(err error) error { return s.c.Answered(err, isBroken(err)) }

// errUnprepared says that a statement was not asked, because the session ended when it was to be prepared.
var errUnprepared = errors.New("the statement was not prepared")

// prepare returns a prepared statement. It costs a round trip when a connection first needs it. It returns nil without
// an error if the server keeps as many as it may, for all of its clients (max_prepared_stmt_count): then the statement
// is sent as a text. The server is asked again the next time.
func (s *speaker) prepare(st statement) (sqldriver.Stmt, error) {
	if s.stmts[st] != nil {
		return s.stmts[st], nil
	}
	s.c.Sent(s.d.opts.Timeout)
	stmt, err := s.my.PrepareContext(background, s.d.texts[st])
	err = s.answered(err)
	switch {
	case numberOf(err) == errTooManyPrepared:
		return nil, nil //nolint:nilnil // see above
	case err != nil:
		return nil, fmt.Errorf("%w: %w", errUnprepared, err)
	}
	s.stmts[st] = stmt
	return stmt, nil
}

// inText puts the arguments of a statement into its text. Nothing in them can end a literal: bytes are written in
// hexadecimal digits, and a string is the name of a kind or of a lock for GET_LOCK. No statement has a question mark
// beside those of its arguments.
func (s *speaker) inText(st statement, args []sqldriver.NamedValue) string {
	parts := strings.Split(s.d.texts[st], "?")
	var text strings.Builder
	for i, part := range parts {
		text.WriteString(part)
		if i == len(args) {
			break
		}
		switch v := args[i].Value.(type) {
		case []byte:
			fmt.Fprintf(&text, "x'%x'", v)
		case string:
			text.WriteString("'" + v + "'")
		default:
			fmt.Fprint(&text, v)
		}
	}
	return text.String()
}

// exec runs one of the statements that return no rows, in one round trip. id is the value of LAST_INSERT_ID in the
// answer.
func (s *speaker) exec(st statement, args []sqldriver.NamedValue) (affected, id int64, err error) {
	stmt, err := s.prepare(st)
	if err != nil {
		return 0, 0, err
	}
	s.c.Sent(s.d.opts.Timeout)
	var result sqldriver.Result
	if stmt == nil {
		result, err = s.my.ExecContext(background, s.inText(st, args), nil)
	} else {
		result, err = stmt.(sqldriver.StmtExecContext).ExecContext(background, args)
	}
	if err := s.answered(err); err != nil {
		return 0, 0, err
	}
	affected, err = result.RowsAffected()
	if err != nil {
		return 0, 0, err
	}
	id, err = result.LastInsertId()
	return affected, id, err
}

// run runs a text without rows.
func (s *speaker) run(text string) error {
	s.c.Sent(s.d.opts.Timeout)
	_, err := s.my.ExecContext(background, text, nil)
	return s.answered(err)
}

// query runs a text and returns the rows of all its statements, one after the other.
func (s *speaker) query(text string) ([]row, error) {
	s.c.Sent(s.d.opts.Timeout)
	rows, err := queryAll(s.my.QueryContext(background, text, nil))
	return rows, s.answered(err)
}

// unlock gives a lock back, and reports whether the session had it. An interruption that was meant for the statement
// before may hit this one, so it is asked again. Whether the interrupted one had its effect nobody knows: so an answer
// that the session has nothing counts as success from the second time on.
func (s *speaker) unlock(lock string) (had bool, err error) {
	for i := range interruptions {
		if had, err = s.unlockOnce(lock); !isPassing(err) {
			return had || i > 0, err
		}
	}
	return had, err
}

// interruptions is how many interruptions may hit one statement.
const interruptions = 5

// unlockOnce sends the statement once.
func (s *speaker) unlockOnce(lock string) (bool, error) {
	args := named(lock)
	stmt, err := s.prepare(stmtUnlock)
	if err != nil {
		return false, err
	}
	s.c.Sent(s.d.opts.Timeout)
	var rows []row
	if stmt == nil {
		rows, err = queryAll(s.my.QueryContext(background, s.inText(stmtUnlock, args), nil))
	} else {
		rows, err = queryAll(stmt.(sqldriver.StmtQueryContext).QueryContext(background, args))
	}
	if err := s.answered(err); err != nil {
		return false, err
	}
	return len(rows) == 1 && rows[0].uint(0) == 1, nil
}

// named makes arguments of a statement, in their order.
func named(args ...sqldriver.Value) []sqldriver.NamedValue {
	values := make([]sqldriver.NamedValue, len(args))
	for i, arg := range args {
		values[i] = sqldriver.NamedValue{Ordinal: i + 1, Value: arg}
	}
	return values
}

// row is one row of an answer. The library's types depend on whether the statement was prepared, which uint and text
// even out.
type row []sqldriver.Value

// uint is a column as a number, 0 if it is NULL or not there.
func (r row) uint(i int) uint64 {
	if i >= len(r) {
		return 0
	}
	switch v := r[i].(type) {
	case int64:
		return uint64(v)
	case uint64:
		return v
	case float64:
		return uint64(v)
	case float32:
		return uint64(v)
	case string:
		if n, err := strconv.ParseUint(v, 10, 64); err == nil {
			return n
		}
		if f, err := strconv.ParseFloat(v, 64); err == nil {
			return uint64(f)
		}
	}
	return 0
}

// text is a column as text, empty if it is NULL or not there.
func (r row) text(i int) string {
	if i >= len(r) {
		return ""
	}
	switch v := r[i].(type) {
	case string:
		return v
	case nil:
		return ""
	default:
		return strconv.FormatUint(r.uint(i), 10)
	}
}

// queryAll reads all rows of all statements. Otherwise the rest would be taken for the answer to the next statement.
func queryAll(rows sqldriver.Rows, err error) ([]row, error) {
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var all []row
	for {
		some, err := readRows(rows)
		all = append(all, some...)
		if err != nil {
			return all, err
		}
		if err := nextSet(rows); errors.Is(err, io.EOF) {
			return all, rows.Close()
		} else if err != nil {
			return all, err
		}
	}
}

// readRows reads the rows of one statement.
func readRows(rows sqldriver.Rows) ([]row, error) {
	var all []row
	for {
		r := make(row, len(rows.Columns()))
		switch err := rows.Next(r); {
		case errors.Is(err, io.EOF):
			return all, nil
		case err != nil:
			return all, err
		}
		for i, v := range r {
			if b, ok := v.([]byte); ok { // the next row is read into the same bytes
				r[i] = string(b)
			}
		}
		all = append(all, r)
	}
}

// nextSet goes on to the rows of the next statement. It returns io.EOF after the last.
func nextSet(rows sqldriver.Rows) error {
	sets, ok := rows.(sqldriver.RowsNextResultSet)
	if !ok {
		return io.EOF
	}
	return sets.NextResultSet()
}
