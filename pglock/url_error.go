package pglock

import (
	"context"
	"errors"
	"fmt"
	"net"
	"regexp"
	"strings"

	"github.com/interlock-go/interlock/driver"
	"github.com/jackc/pgx/v5/pgconn"
)

// openError says that no lock can be taken through a URL: the server cannot be reached or does not let us in. It matches
// driver.ErrUnavailable.
type openError struct {
	config *pgconn.Config
	err    error
}

// Error names the server and what is wrong, and what to do about it if that is known.
func (e *openError) Error() string {
	s := fmt.Sprintf("postgres: cannot use %s: %v", e.config.Host, e.reason())
	if advice := e.advice(); advice != "" {
		s += " (" + advice + ")"
	}
	return s
}

// reason is the cause without the client library's description of the configuration.
func (e *openError) reason() error {
	var failed *pgconn.ConnectError
	if errors.As(e.err, &failed) && failed.Unwrap() != nil {
		return lineError{failed.Unwrap()}
	}
	return lineError{e.err}
}

// lineError is an error whose text the client library has spread over several lines, one for each attempt.
type lineError struct{ error }

var spread = regexp.MustCompile(`\s*\n\s*`)

// Error is the text on one line.
func (e lineError) Error() string {
	return spread.ReplaceAllString(strings.TrimSpace(e.error.Error()), "; ")
}

// Is matches driver.ErrUnavailable.
func (e *openError) Is(t error) bool { return t == driver.ErrUnavailable }

// Unwrap returns what is wrong.
func (e *openError) Unwrap() error { return e.err }

// advice explains what servers and the client library say in their own words.
func (e *openError) advice() string {
	says := func(part string) bool { return strings.Contains(e.err.Error(), part) }
	var slow net.Error
	switch {
	case stateOf(e.err) == stateWrongPassword:
		return "user or password is wrong; in a URL, special characters are written as %-escapes"
	case stateOf(e.err) == stateNoDatabase:
		return "the path names a database that must exist"
	case stateOf(e.err) == stateNotAllowed && says("no encryption"):
		return "the server wants encrypted connections: write sslmode=require or better"
	case stateOf(e.err) == stateTooMany:
		return "raise max_connections"
	case says("server refused TLS"):
		return "the server does not speak TLS: write sslmode=disable"
	case says("x509: certificate signed by unknown authority"):
		return "name the file with the authority's certificate: sslrootcert=/path/ca.crt"
	case errors.Is(e.err, context.DeadlineExceeded), errors.As(e.err, &slow) && slow.Timeout():
		return "nobody answers in time: is this the address of a PostgreSQL server?"
	}
	return ""
}
