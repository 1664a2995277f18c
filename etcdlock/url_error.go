// Errors of opening by URL, with advice. url.go returns them.
//
// The library and grpc give most of these errors as texts only, so they are recognized by their words. A text that a
// later version words otherwise costs the hint and nothing else: whether the outcome is known is decided in outcome.go.

package etcdlock

import (
	"context"
	"errors"
	"strings"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/enginekit"
)

// openError is the error of servers that cannot be used through a URL.
func openError(u *driver.URL, err error) error {
	return &enginekit.OpenError{
		Engine: "etcd", Servers: strings.Join(u.Hosts, ","), Err: err, Hint: opening{u, err}.advice(),
		Refused: isRefusal(err),
	}
}

// opening is what the advice on an error depends on.
type opening struct {
	url *driver.URL
	err error
}

// advice explains what servers and clients say in their own words. The more specific texts come first.
func (e opening) advice() string {
	text := e.err.Error()
	says := func(part string) bool { return strings.Contains(text, part) }
	switch {
	case says("user name is empty"):
		return "the server wants a user: write etcd://user:password@host"
	case says("authentication failed"):
		return "user or password is wrong; in a URL, special characters are written as %-escapes"
	case says("authentication is not enabled"):
		return "the server has no users: leave user and password out of the URL"
	case says("permission denied"):
		return rightsHint
	case says("unknown authority"):
		return "name the file with the authority's certificate: ca=/path/ca.crt"
	case says("certificate required"), says("bad certificate"):
		return "the server wants a client's certificate: cert=/path/client.crt and key=/path/client.key"
	case says("does not look like a TLS"), says("wrong version number"):
		return "the server does not speak TLS there: leave tls=true out of the URL"
	case says("connection refused"), says("no such host"):
		return "is the address right, and does the server run?"
	case says("error reading server preface"), says("EOF"), says("connection reset"):
		return e.perhapsTLS()
	case errors.Is(e.err, context.DeadlineExceeded), says("context deadline exceeded"):
		return "no server has answered in time; " + e.perhapsTLS()
	}
	return ""
}

// perhapsTLS is advice for a connection that ends without a reason: one side may speak TLS and the other not.
func (e opening) perhapsTLS() string {
	if e.url.Query.Has("tls") {
		return "does the server speak TLS on this port, and does it want a client's certificate (cert and key)?"
	}
	return "if the server speaks TLS on this port, write tls=true"
}
