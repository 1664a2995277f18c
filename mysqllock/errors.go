// What the server's errors mean. speaker.go and talk.go ask whether a statement may be run again or has ended the
// connection; sqlsession asks through dialect.go what to tell the caller.

package mysqllock

import (
	"errors"
	"fmt"
	"net"

	"github.com/go-sql-driver/mysql"
	"github.com/interlock-go/interlock/enginekit/sqlsession"
)

// The numbers of errors to which the engine reacts. Of these, the ones from 1900 on are MariaDB's own, and the ones
// from 3000 on MySQL's.
const (
	errTooManyConnections = 1040
	errAccessDenied       = 1044
	errWrongPassword      = 1045
	errNull               = 1048 // stmtMint found that the session does not have the lock
	errUnknownDatabase    = 1049
	errShutdown           = 1053
	errUnknownThread      = 1094
	errDiskFull           = 1021
	errTableFull          = 1114
	errNoRight            = 1142
	errNoColumnRight      = 1143
	errNoTable            = 1146
	errTooManyOfUser      = 1203
	errLockWait           = 1205 // innodb_lock_wait_timeout: a row was locked by somebody else
	errDeadlock           = 1213
	errUnsupportedYet     = 1235 // GET_LOCK on a node of Galera
	errReadOnlyOption     = 1290
	errInterrupted        = 1317 // KILL QUERY
	errUserLimit          = 1226
	errTooManyPrepared    = 1461
	errStatementTime      = 1969 // max_statement_time
	errReadOnlyServer     = 1836
	errKilled             = 1927 // MariaDB
	errKilledMySQL        = 3169
	errIdleMySQL          = 4031 // wait_timeout has ended the session
)

var (
	// errSwapped is the error of a statement that another session has answered, or of an unlock without a lock. Both
	// mean that the connection's session is not the one that holds its locks.
	errSwapped = errors.New("another session of the server answers on this connection, or this one has lost its " +
		"locks: a proxy that shares sessions cannot be used for locks")

	// errNoToken is the error of a row that was written and whose token did not come back.
	errNoToken = errors.New("the answer to a grant has no LAST_INSERT_ID: a proxy that drops it cannot be used " +
		"for locks")

	// errDemoted is the error of a server that was writable when the session began and is not any more.
	errDemoted = errors.New("the server has become read-only, so another one may be the primary now, and grant the " +
		"same locks")

	// errOtherServer is the error of an address that leads to several servers.
	errOtherServer = errors.New("the address leads to another server than before: GET_LOCK is a lock of one server, " +
		"so a load balancer in front of several cannot be used for locks")
)

// numberOf is the number of an error that the server has sent, or 0 for every other error.
func numberOf(err error) uint16 {
	var said *mysql.MySQLError
	if errors.As(err, &said) {
		return said.Number
	}
	return 0
}

// isGoodbye reports whether the server says with err that it ends the session.
func isGoodbye(err error) bool {
	switch numberOf(err) {
	case errShutdown, errKilled, errKilledMySQL, errIdleMySQL:
		return true
	}
	return false
}

// isBroken reports whether err leaves open what the server has done, or says that the session has ended. The connection
// is not used after that: an answer that is still on its way would be taken for that of the next statement.
func isBroken(err error) bool {
	return err != nil && (numberOf(err) == 0 || isGoodbye(err) || isOfAProxy(err))
}

// isOfAProxy reports whether err has a number that no server sends: one of client libraries, or of ProxySQL's own. A
// proxy does, when its own connection to the server has broken: the session is gone, and whatever comes next goes to
// another one.
func isOfAProxy(err error) bool {
	n := numberOf(err)
	return n >= 2000 && n <= 2999 || n >= 9000 && n <= 9999
}

// isFull reports whether the server has no room for another connection at the moment.
func isFull(err error) bool {
	switch numberOf(err) {
	case errTooManyConnections, errTooManyOfUser, errUserLimit:
		return true
	}
	return false
}

// isPassing reports whether the same statement may succeed if it is run again at once. None of these errors says
// anything about the lock: GET_LOCK is not undone by a rollback.
func isPassing(err error) bool {
	switch numberOf(err) {
	case errDeadlock, errInterrupted:
		return true
	}
	return false
}

// advise adds what to do about an error that people meet.
func advise(err error) error {
	switch numberOf(err) {
	case errLockWait:
		return fmt.Errorf("%w (somebody keeps rows of the table of tokens locked)", err)
	case errUnsupportedYet:
		return fmt.Errorf("%w (%s)", err, galeraReason)
	}
	if _, hint := judgeError(err); hint != "" {
		return fmt.Errorf("%w (%s)", err, hint)
	}
	return err
}

// judgeError says what an error means to the caller, and for one that is refused what to do. Refused means that asking
// again is of no use; Unreached that no server has seen the request; Unknown that the outcome is not known.
func judgeError(err error) (sqlsession.Meaning, string) {
	var broken *net.OpError
	switch numberOf(err) {
	case errTooManyConnections:
		return sqlsession.Refused, "raise max_connections, or set fewer waits"
	case errTooManyOfUser, errUserLimit:
		return sqlsession.Refused, "raise the user's limit of connections, or set fewer waits"
	case errNoRight, errNoColumnRight, errAccessDenied:
		return sqlsession.Refused, "see the package documentation of mysqllock for the rights that locking needs"
	case errWrongPassword:
		return sqlsession.Refused, "user or password is wrong"
	case errUnknownDatabase:
		return sqlsession.Refused, "the database must exist"
	case errReadOnlyOption, errReadOnlyServer:
		return sqlsession.Refused, "this is a replica, or set read-only: name the primary"
	case errDiskFull, errTableFull:
		return sqlsession.Refused, "the server has no room: free space on its disk"
	case 0:
		if errors.As(err, &broken) && broken.Op == "dial" {
			return sqlsession.Unreached, ""
		}
	}
	return sqlsession.Unknown, ""
}
