package mysqllock

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/go-sql-driver/mysql"
	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/enginekit/sqlsession"
)

// openError says that no lock can be taken through a URL: the server cannot be reached or does not let us in. It matches
// driver.ErrUnavailable.
type openError struct {
	config *mysql.Config
	err    error
}

// Error names the server and what is wrong, and what to do about it if that is known.
func (e *openError) Error() string {
	s := fmt.Sprintf("mysql: cannot use %s: %v", e.config.Addr, e.err)
	if advice := e.advice(); advice != "" {
		s += " (" + advice + ")"
	}
	return s
}

// Is matches driver.ErrUnavailable. A refusal does so by what it wraps.
func (e *openError) Is(t error) bool { return t == driver.ErrUnavailable && !e.refused() }

// refused reports whether the server has said no, and will again.
func (e *openError) refused() bool {
	meaning, _ := judgeError(e.err)
	return meaning == sqlsession.Refused
}

// Unwrap returns what is wrong.
func (e *openError) Unwrap() error {
	if e.refused() {
		return &driver.RefusedError{Op: "open", Err: e.err, Hint: e.advice()}
	}
	return e.err
}

// advice explains what servers and the client library say in their own words.
func (e *openError) advice() string {
	says := func(part string) bool { return strings.Contains(e.err.Error(), part) }
	var slow net.Error
	switch {
	case numberOf(e.err) == errWrongPassword && e.config.User == "":
		return "name a user: mysql://user:password@host/database"
	case numberOf(e.err) == errAccessDenied:
		return "the user has no rights in that database; see the package documentation of mysqllock"
	case numberOf(e.err) == errWrongPassword && e.config.TLS == nil:
		return "user or password is wrong, or the server wants encrypted connections (tls=true); in a URL, special characters are written as %-escapes"
	case numberOf(e.err) == errWrongPassword:
		return "user or password is wrong; in a URL, special characters are written as %-escapes"
	case numberOf(e.err) == errUnknownDatabase:
		return "the path names a database that must exist"
	case errors.Is(e.err, mysql.ErrNoTLS):
		return "the server does not speak TLS: leave out tls=true"
	case says("require_secure_transport"), says("insecure transport"):
		return "the server wants encrypted connections: write tls=true"
	case says("x509: certificate signed by unknown authority"):
		return "name the file with the authority's certificate: ca=/path/ca.crt"
	case errors.Is(e.err, context.DeadlineExceeded), errors.As(e.err, &slow) && slow.Timeout():
		return "nobody answers in time: is this the address of a MySQL or MariaDB server?"
	}
	return ""
}
