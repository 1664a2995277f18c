package pglock

import (
	"context"
	"errors"
	"fmt"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/enginekit/sqlsession"
	"github.com/jackc/pgx/v5/pgconn"
)

// openError says that no lock can be taken through a URL: the server cannot be reached or does not let us in. It matches
// driver.ErrUnavailable.
type openError struct {
	config *pgconn.Config
	err    error
	named  bool // the URL names the user
}

// Error names the server and what is wrong, and what to do about it if that is known.
func (e *openError) Error() string {
	s := fmt.Sprintf("postgres: cannot use %s: %v", e.servers(), e.reason())
	if advice := e.advice(); advice != "" {
		s += " (" + advice + ")"
	}
	return s
}

// servers are the addresses, or the folder of a socket.
func (e *openError) servers() string {
	var all []string
	add := func(host string, port uint16) {
		if !strings.HasPrefix(host, "/") {
			host = net.JoinHostPort(host, strconv.Itoa(int(port)))
		}
		if !slices.Contains(all, host) { // there is one of each way to encrypt
			all = append(all, host)
		}
	}
	add(e.config.Host, e.config.Port)
	for _, f := range e.config.Fallbacks {
		add(f.Host, f.Port)
	}
	return strings.Join(all, ",")
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

// refusedTLS is what the client library says of an attempt after which it tries without encryption, unless it must not.
const refusedTLS = "server refused TLS"

// Error is the text on one line. What several attempts have met is said once, and what was tried otherwise afterwards not at all.
func (e lineError) Error() string {
	var all []string
	for _, attempt := range spread.Split(strings.TrimSpace(e.error.Error()), -1) {
		if n := len(all); n > 0 && strings.Contains(all[n-1], refusedTLS) {
			all = all[:n-1]
		}
		if !slices.Contains(all, attempt) {
			all = append(all, attempt)
		}
	}
	return strings.Join(all, "; ")
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
	case (stateOf(e.err) == stateWrongPassword || stateOf(e.err) == stateNotAllowed) && !e.named && !says("no encryption"):
		return "the URL names no user, so it is " + e.config.User + "; write postgres://user:password@host/database"
	case stateOf(e.err) == stateWrongPassword && e.config.Password == "":
		return "the server wants a password; write postgres://user:password@host/database"
	case stateOf(e.err) == stateWrongPassword:
		return "user or password is wrong; in a URL, special characters are written as %-escapes"
	case stateOf(e.err) == stateNoDatabase:
		return "the path names a database that must exist"
	case stateOf(e.err) == stateNotAllowed && says("no encryption"):
		return "the server wants encrypted connections: write sslmode=require or better"
	case stateOf(e.err) == stateTooMany:
		return "raise max_connections"
	case strings.Contains(e.reason().Error(), refusedTLS):
		return "the server does not speak TLS: write sslmode=disable"
	case says("x509: certificate signed by unknown authority"):
		return "name the file with the authority's certificate: sslrootcert=/path/ca.crt"
	case says("connection refused"), says("no such host"), says("no such file or directory"):
		return "is the address right, and does the server run?"
	case errors.Is(e.err, context.DeadlineExceeded), errors.As(e.err, &slow) && slow.Timeout():
		return "nobody answers in time: is this the address of a PostgreSQL server?"
	}
	return ""
}
