// What to tell people when a driver cannot be opened by its URL: which server, why, and what to do. url.go makes the
// error; enginekit prints it.

package mysqllock

import (
	"context"
	"errors"
	"net"
	"strings"

	"github.com/go-sql-driver/mysql"
	"github.com/interlock-go/interlock/enginekit"
	"github.com/interlock-go/interlock/enginekit/sqlsession"
)

// openError is the error of a server that cannot be used through a URL.
func openError(config *mysql.Config, err error) error {
	meaning, _ := judgeError(err)
	return &enginekit.OpenError{
		Engine: "mysql", Servers: config.Addr, Err: err, Hint: opening{config, err}.advice(),
		Refused: meaning == sqlsession.Refused,
	}
}

// opening is what advice on an error depends on.
type opening struct {
	config *mysql.Config
	err    error
}

// advice says in plain words what to do about an error, or returns "". The server has one number for several causes,
// which the URL tells apart.
func (e opening) advice() string {
	says := func(part string) bool { return strings.Contains(e.err.Error(), part) }
	var slow net.Error
	switch {
	case numberOf(e.err) == errWrongPassword && e.config.User == "":
		return "name a user: mysql://user:password@host/database"
	case numberOf(e.err) == errAccessDenied:
		return "the user has no rights in that database; see the package documentation of mysqllock"
	case numberOf(e.err) == errWrongPassword && e.config.TLS == nil:
		return "user or password is wrong, or the server wants encrypted connections (tls=true); in a URL, special " +
			"characters are written as %-escapes"
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
