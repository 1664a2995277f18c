package pglock

import (
	"errors"
	"fmt"

	"github.com/interlock-go/interlock/enginekit/sqlsession"
	"github.com/jackc/pgx/v5/pgconn"
)

// SQLSTATEs that mean something here.
const (
	stateLockTimeout   = "55P03"
	stateCancelled     = "57014"
	stateDeadlock      = "40P01"
	stateSerialization = "40001"
	stateNoRight       = "42501"
	stateDuplicate     = "42P07"
	stateUnique        = "23505"
	stateSameType      = "42710" // each table has a type of its name
	stateReadOnly      = "25006"
	stateTooMany       = "53300"
	stateOutOfMemory   = "53200"
	stateDiskFull      = "53100"
	stateStarting      = "57P03"
	stateIdle          = "57P05"
	stateWrongPassword = "28P01"
	stateNotAllowed    = "28000"
	stateNoDatabase    = "3D000"
	stateNoColumn      = "42703"
)

// errSwapped says that statements do not reach the session that they should.
var errSwapped = errors.New("another session of the server answers on this connection, or this one has lost its " +
	"locks: a pooler that shares sessions cannot be used for locks")

// stateOf is the SQLSTATE of an error that the server has sent, or "".
func stateOf(err error) string {
	var said *pgconn.PgError
	if errors.As(err, &said) {
		return said.Code
	}
	return ""
}

// isGoodbye reports whether the server says that it ends the session.
func isGoodbye(err error) bool {
	var said *pgconn.PgError
	return errors.As(err, &said) && (said.SeverityUnlocalized == "FATAL" || said.SeverityUnlocalized == "PANIC")
}

// isBroken reports whether err leaves open what the server has done, after which the connection is not used any more.
func isBroken(err error) bool { return err != nil && (stateOf(err) == "" || isGoodbye(err)) }

// isPassing reports whether the same statement may succeed if it is run again at once.
func isPassing(err error) bool {
	switch stateOf(err) {
	case stateCancelled, stateDeadlock, stateSerialization:
		return true
	}
	return false
}

// advise adds what to do about an error that people meet.
func advise(err error) error {
	if stateOf(err) == stateLockTimeout {
		return fmt.Errorf("%w (somebody keeps rows of the table of tokens locked)", err)
	}
	if _, hint := judgeError(err); hint != "" {
		return fmt.Errorf("%w (%s)", err, hint)
	}
	return err
}

// judgeError says what an error means to the caller. All that the server and the client library say is sorted here.
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
