package mysqllock

import (
	"errors"
	"fmt"
	"net"

	"github.com/go-sql-driver/mysql"
	"github.com/interlock-go/interlock/enginekit/sqlsession"
)

// Numbers of errors that mean something here.
const (
	errTooManyConnections = 1040
	errAccessDenied       = 1044
	errWrongPassword      = 1045
	errNull               = 1048
	errUnknownDatabase    = 1049
	errShutdown           = 1053
	errUnknownThread      = 1094
	errDiskFull           = 1021
	errTableFull          = 1114
	errNoRight            = 1142
	errNoColumnRight      = 1143
	errNoTable            = 1146
	errTooManyOfUser      = 1203
	errLockWait           = 1205
	errDeadlock           = 1213
	errUnsupportedYet     = 1235
	errReadOnlyOption     = 1290
	errInterrupted        = 1317
	errUserLimit          = 1226
	errTooManyPrepared    = 1461
	errStatementTime      = 1969
	errReadOnlyServer     = 1836
	errKilled             = 1927 // MariaDB
	errKilledMySQL        = 3169
	errIdleMySQL          = 4031
)

var (
	// errSwapped says that statements do not reach the session that they should.
	errSwapped = errors.New("another session of the server answers on this connection, or this one has lost its " +
		"locks: a proxy that shares sessions cannot be used for locks")

	// errOtherServer says that one address leads to several servers.
	errOtherServer = errors.New("the address leads to another server than before: GET_LOCK is a lock of one server, " +
		"so a load balancer in front of several cannot be used for locks")
)

// numberOf is the number of an error that the server has sent, or 0.
func numberOf(err error) uint16 {
	var said *mysql.MySQLError
	if errors.As(err, &said) {
		return said.Number
	}
	return 0
}

// isGoodbye reports whether the server says that it ends the session.
func isGoodbye(err error) bool {
	switch numberOf(err) {
	case errShutdown, errKilled, errKilledMySQL, errIdleMySQL:
		return true
	}
	return false
}

// isBroken reports whether err leaves open what the server has done, after which the connection is not used any more.
func isBroken(err error) bool { return err != nil && (numberOf(err) == 0 || isGoodbye(err)) }

// isFull reports whether the server has no room for another connection.
func isFull(err error) bool {
	switch numberOf(err) {
	case errTooManyConnections, errTooManyOfUser, errUserLimit:
		return true
	}
	return false
}

// isPassing reports whether the same statement may succeed if it is run again at once.
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

// judgeError says what an error means to the caller. All that the server and the client library say is sorted here.
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
