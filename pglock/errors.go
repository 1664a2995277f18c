// What the server's errors mean. speaker.go, try.go and talk.go ask whether a statement may be run again or has ended
// the connection; sqlsession asks through dialect.go what to tell the caller.

package pglock

import (
	"errors"
	"fmt"

	"github.com/interlock-go/interlock/enginekit/sqlsession"
	"github.com/jackc/pgx/v5/pgconn"
)

// The SQLSTATEs to which the engine reacts; see appendix A of PostgreSQL's documentation.
const (
	stateLockTimeout   = "55P03" // lock_timeout: a wait has lasted for its slice
	stateCancelled     = "57014" // pg_cancel_backend, or statement_timeout
	stateDeadlock      = "40P01"
	stateSerialization = "40001"
	stateNoRight       = "42501"
	stateDuplicate     = "42P07"
	stateUnique        = "23505"
	stateSameType      = "42710" // each table has a type of its name
	stateReadOnly      = "25006"
	stateTooMany       = "53300"
	stateOutOfMemory   = "53200"
	stateDiskFull      = "53100" // no space on the server's disk
	stateStarting      = "57P03" // it starts, stops or recovers
	stateIdle          = "57P05" // idle_session_timeout has ended the session
	stateWrongPassword = "28P01"
	stateNotAllowed    = "28000"
	stateNoDatabase    = "3D000"
	stateNoColumn      = "42703"
	stateNoTable       = "42P01"
)

// errSwapped is the error of a statement that another session has answered, or of an unlock without a lock. Both mean
// that the connection's session is not the one that holds its locks.
var errSwapped = errors.New("another session of the server answers on this connection, or this one has lost its " +
	"locks: a pooler that shares sessions cannot be used for locks")

// errOtherServer is the error of an address, or of several, that leads to two servers at once.
var errOtherServer = errors.New("the address leads to another server than before, which still answers: an advisory " +
	"lock is a lock of one server, so several that can all be written to cannot be used for locks")

// stateOf is the SQLSTATE of an error that the server has sent, or "" for every other error.
func stateOf(err error) string {
	var said *pgconn.PgError
	if errors.As(err, &said) {
		return said.Code
	}
	return ""
}

// isGoodbye reports whether the server says with err that it ends the session. The text of the severity is translated;
// its unlocalized form is not.
func isGoodbye(err error) bool {
	var said *pgconn.PgError
	return errors.As(err, &said) && (said.SeverityUnlocalized == "FATAL" || said.SeverityUnlocalized == "PANIC")
}

// isBroken reports whether err leaves open what the server has done, or says that the session has ended. The connection
// is not used after that: an answer that is still on its way would be taken for that of the next statement.
func isBroken(err error) bool { return err != nil && (stateOf(err) == "" || isGoodbye(err)) }

// isPassing reports whether the same statement may succeed if it is run again at once. All three roll back the
// statement, and none says anything about the lock: an advisory lock of a session is not given back by a rollback.
func isPassing(err error) bool {
	switch stateOf(err) {
	case stateCancelled, stateDeadlock, stateSerialization:
		return true
	}
	return false
}

// advise adds what to do about an error that people meet. stateLockTimeout is explained here and not in judgeError,
// because to a wait it is no error.
func advise(err error) error {
	if stateOf(err) == stateLockTimeout {
		return fmt.Errorf("%w (somebody keeps rows of the table of tokens locked)", err)
	}
	if _, hint := judgeError(err); hint != "" {
		return fmt.Errorf("%w (%s)", err, hint)
	}
	return err
}

// judgeError says what an error means to the caller, and for one that is refused what to do. Refused means that asking
// again is of no use; Unreached that no server has seen the request; Unknown that the outcome is not known.
func judgeError(err error) (sqlsession.Meaning, string) {
	var failed *pgconn.ConnectError
	switch stateOf(err) {
	case stateOutOfMemory:
		return sqlsession.Refused, "the server has no room for more locks: raise max_locks_per_transaction, which " +
			"all sessions share"
	case stateTooMany:
		return sqlsession.Refused, "raise max_connections, or set fewer waits"
	case stateNoRight:
		return sqlsession.Refused, "see the package documentation of pglock for the rights that locking needs"
	case stateReadOnly:
		return sqlsession.Refused, "this is a standby, or set read-only: name the primary"
	case stateDiskFull:
		return sqlsession.Refused, "the server has no room: free space on its disk"
	case stateWrongPassword, stateNotAllowed:
		return sqlsession.Refused, "user or password is wrong, or pg_hba.conf lets this user not in"
	case stateNoDatabase:
		return sqlsession.Refused, "the database must exist"
	case stateStarting:
		return sqlsession.Unreached, ""
	case "":
		if errors.As(err, &failed) {
			return sqlsession.Unreached, ""
		}
	}
	return sqlsession.Unknown, ""
}
