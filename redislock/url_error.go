// Errors of the start, with the servers that they are about and what to do. driver.go and url.go return them.

package redislock

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"syscall"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/enginekit"
	"github.com/interlock-go/interlock/redislock/conn"
)

// opening describes servers that could not be used.
type opening struct {
	url   *driver.URL // nil if a client was given
	addrs []string    // what the client says of its servers, if it does
	err   error
	again bool // other servers take the place of failed ones
}

// failed turns an error of the start into one that says where and what to do. Errors of the check say so themselves.
func (d *Driver) failed(err error) error {
	if errors.Is(err, enginekit.ErrNotSetUp) || errors.Is(err, driver.ErrClosed) {
		return err
	}
	o := opening{err: err, again: d.failsOver()}
	if f, tells := d.conn.(Failover); tells {
		o.addrs = f.Addrs()
	}
	return o.failed()
}

// withHosts puts the hosts of a URL into an error of the start over c, which knows only addresses.
func withHosts(u *driver.URL, c Conn, err error) error {
	var opened *enginekit.OpenError
	if errors.As(err, &opened) {
		return opening{url: u, err: opened.Err, again: conn.FailsOver(c)}.failed()
	}
	return err
}

// failed is the error that says all of it. Refused is whether a later attempt would end in the same way.
func (e opening) failed() error {
	refused := judgeError(e.err, e.again).class == denied || e.says("DB index is out of range")
	return &enginekit.OpenError{Engine: "redis", Servers: e.servers(), Err: e.err, Hint: e.advice(), Refused: refused}
}

func (e opening) servers() string {
	switch {
	case e.url != nil:
		return strings.Join(e.url.Hosts, ",")
	case len(e.addrs) > 0:
		return strings.Join(e.addrs, ",")
	}
	return "the client's servers"
}

// advice explains what servers and clients say in their own words. The order matters: several may fit, and the more
// specific comes first.
func (e opening) advice() string {
	if e.url == nil {
		return e.adviceOnClient()
	}
	return cmp.Or(e.adviceOnTopology(), e.adviceOnRights(), e.adviceOnWords(), e.adviceOnSilence())
}

// adviceOnTopology is for a URL that leads to servers of another kind.
func (e opening) adviceOnTopology() string {
	switch {
	case errors.Is(e.err, conn.ErrReplica):
		return "name the primary, or let Sentinels find it: redis+sentinel://host1,host2,host3/NAME"
	case errors.Is(e.err, conn.ErrClusterNode):
		return "write redis+cluster://" + strings.Join(e.url.Hosts, ",")
	case e.says("unknown command 'SENTINEL'"):
		return "these are servers, not Sentinels: write redis://host, or name the Sentinels"
	case e.says("No such master"):
		return "the path is the name under which the Sentinels know the primary"
	}
	return ""
}

// adviceOnRights is for users and passwords.
func (e opening) adviceOnRights() string {
	switch {
	case e.says("NOAUTH") && e.url.Scheme == "redis+sentinel":
		return "user and password in front of the hosts are for the servers; for Sentinels set sentinel-user and " +
			"sentinel-password"
	case e.says("NOAUTH"):
		return "the server wants a password: write " + e.url.Scheme +
			"://user:password@host, or :password@ without a user"
	case e.says("WRONGPASS"):
		return "user or password is wrong; in a URL, special characters are written as %-escapes"
	case e.says("NOPERM"):
		return "see the package documentation of redislock for the rights that locking needs"
	}
	return ""
}

// adviceOnWords is for what else a server or the TLS library says.
func (e opening) adviceOnWords() string {
	switch {
	case e.says("DB index is out of range"):
		return "the server has fewer databases"
	case e.says("tls: first record does not look like a TLS"):
		return "the server does not speak TLS there: name its TLS port, or write " +
			strings.Replace(e.url.Scheme, "rediss", "redis", 1) + ":// without tls=true"
	case e.says("x509: certificate signed by unknown authority"):
		return "name the file with the authority's certificate: ca=/path/ca.crt"
	case e.says("certificate required"):
		return "the server wants a client's certificate: cert=/path/client.crt and key=/path/client.key"
	}
	return ""
}

// adviceOnSilence is for a connection that ends, or brings nothing. Neither side says "this is TLS" and "this is not":
// the connection just ends.
func (e opening) adviceOnSilence() string {
	switch {
	case e.isBroken() && e.encrypts():
		return "does the server speak TLS on this port, and does it want a client's certificate (cert and key)?"
	case e.isBroken():
		return "if the server speaks TLS on this port, write rediss:// or tls=true"
	case e.isLate() && e.encrypts():
		return "does the server speak TLS on this port?"
	case errors.Is(e.err, syscall.ECONNREFUSED):
		return refusedHint
	}
	return ""
}

// says reports whether the error's text has these words.
func (e opening) says(words string) bool { return strings.Contains(e.err.Error(), words) }

// adviceOnClient is advice to a program that has made the client itself, so it names no URL.
func (e opening) adviceOnClient() string {
	switch {
	case errors.Is(e.err, conn.ErrReplica):
		return "give a client of the primary, or one that asks Sentinels for it"
	case errors.Is(e.err, conn.ErrClusterNode):
		return "give a client for a Cluster: rueidis.NewClient without ForceSingleClient, or redis.NewClusterClient"
	case e.says("NOAUTH"):
		return "the server wants a password: set it in the client's options"
	case errors.Is(e.err, syscall.ECONNREFUSED):
		return refusedHint
	case e.isLate():
		return "the server did not answer in time"
	}
	return judgeError(e.err, e.again).hint
}

// refusedHint is for ports on which nothing listens.
const refusedHint = "is the address right, and does the server run?"

func (e opening) encrypts() bool { return e.url.Scheme == "rediss" || e.url.Query.Has("tls") }

// isBroken reports whether the server has closed the connection.
func (e opening) isBroken() bool {
	return errors.Is(e.err, io.EOF) || errors.Is(e.err, syscall.ECONNRESET) || errors.Is(e.err, syscall.EPIPE)
}

// isLate reports whether nothing has answered in time.
func (e opening) isLate() bool {
	var slow net.Error
	return errors.Is(e.err, context.DeadlineExceeded) || errors.As(e.err, &slow) && slow.Timeout()
}
