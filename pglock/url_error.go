// What to tell people when a driver cannot be opened by its URL: which servers, why, and what to do. url.go makes the
// error; enginekit prints it.

package pglock

import (
	"cmp"
	"context"
	"errors"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/interlock-go/interlock/enginekit"
	"github.com/interlock-go/interlock/enginekit/sqlsession"
	"github.com/jackc/pgx/v5/pgconn"
)

// openError is the error of servers that cannot be used through a URL. named says that the URL names the user.
func openError(config *pgconn.Config, err error, named bool) error {
	o := opening{config, err, named}
	meaning, _ := judgeError(err)
	return &enginekit.OpenError{
		Engine: "postgres", Servers: o.servers(), Err: err, Text: o.reason(), Hint: o.advice(),
		Refused: meaning == sqlsession.Refused,
	}
}

// opening is what the text of such an error depends on.
type opening struct {
	config *pgconn.Config
	err    error
	named  bool // the URL names the user
}

// servers are the addresses that were tried, or the folder of a socket, with commas between.
func (e opening) servers() string {
	var all []string
	add := func(host string, port uint16) {
		if !strings.HasPrefix(host, "/") {
			host = net.JoinHostPort(host, strconv.Itoa(int(port)))
		}
		if !slices.Contains(all, host) { // the library lists an address once for each way to encrypt
			all = append(all, host)
		}
	}
	add(e.config.Host, e.config.Port)
	for _, f := range e.config.Fallbacks {
		add(f.Host, f.Port)
	}
	return strings.Join(all, ",")
}

// reason is the cause, without the client library's description of the configuration.
func (e opening) reason() string {
	var failed *pgconn.ConnectError
	if errors.As(e.err, &failed) && failed.Unwrap() != nil {
		return inOneLine(failed.Unwrap())
	}
	return inOneLine(e.err)
}

// spread matches the end of a line and the spaces around it.
var spread = regexp.MustCompile(`\s*\n\s*`)

// refusedTLS is what the client library says of an attempt after which it tries without encryption, unless sslmode
// forbids that.
const refusedTLS = "server refused TLS"

// inOneLine puts the text of an error on one line. The client library has a line for each attempt. The same cause of
// several attempts is said once, and an attempt with TLS is not mentioned if another without it came after: the last
// one has the cause.
func inOneLine(err error) string {
	var all []string
	for _, attempt := range spread.Split(strings.TrimSpace(err.Error()), -1) {
		if n := len(all); n > 0 && strings.Contains(all[n-1], refusedTLS) {
			all = all[:n-1]
		}
		if !slices.Contains(all, attempt) {
			all = append(all, attempt)
		}
	}
	return strings.Join(all, "; ")
}

// advice says in plain words what to do, first about an answer of the server, then about none.
func (e opening) advice() string { return cmp.Or(e.adviceOnRefusal(), e.adviceOnConnecting()) }

// says reports whether the error's text has a part. The client library has no other way to tell these apart.
func (e opening) says(part string) bool { return strings.Contains(e.err.Error(), part) }

// adviceOnRefusal is about what the server has answered.
func (e opening) adviceOnRefusal() string {
	state, encrypts := stateOf(e.err), e.says("no encryption")
	switch {
	case (state == stateWrongPassword || state == stateNotAllowed) && !e.named && !encrypts:
		return "the URL names no user, so it is " + e.config.User + "; write postgres://user:password@host/database"
	case state == stateWrongPassword && e.config.Password == "":
		return "the server wants a password; write postgres://user:password@host/database"
	case state == stateWrongPassword:
		return "user or password is wrong; in a URL, special characters are written as %-escapes"
	case state == stateNoDatabase:
		return "the path names a database that must exist"
	case state == stateNotAllowed && encrypts:
		return "the server wants encrypted connections: write sslmode=require or better"
	case state == stateTooMany:
		return "raise max_connections"
	}
	return ""
}

// adviceOnConnecting is about a server that has not answered.
func (e opening) adviceOnConnecting() string {
	var slow net.Error
	switch {
	case strings.Contains(e.reason(), refusedTLS):
		return "the server does not speak TLS: write sslmode=disable"
	case e.says("x509: certificate signed by unknown authority"):
		return "name the file with the authority's certificate: sslrootcert=/path/ca.crt"
	case e.says("connection refused"), e.says("no such host"), e.says("no such file or directory"):
		return "is the address right, and does the server run?"
	case errors.Is(e.err, context.DeadlineExceeded), errors.As(e.err, &slow) && slow.Timeout():
		return "nobody answers in time: is this the address of a PostgreSQL server?"
	}
	return ""
}
