package redislock

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"

	"github.com/interlock-go/interlock/driver"
)

// openError says that no lock can be taken through a URL or a client: the servers cannot be reached, do not let us in, or are
// not those that they should be. It matches driver.ErrUnavailable, and driver.ErrRefused if the servers have said no.
type openError struct {
	url   *driver.URL // nil if a client was given
	addrs []string    // what the client says of its servers, if it tells
	err   error
	again bool // other servers take the place of these
}

// failed makes an error of the start one that says where and what to do.
func (d *Driver) failed(err error) error {
	var badlySetUp *setupError
	if errors.As(err, &badlySetUp) || errors.Is(err, driver.ErrClosed) {
		return err
	}
	e := &openError{err: err, again: d.failsOver()}
	if f, tells := d.conn.(Failover); tells {
		e.addrs = f.Addrs()
	}
	return e
}

// at has an error of the start name the servers of a URL.
func at(u *driver.URL, err error) error {
	var opened *openError
	if errors.As(err, &opened) {
		opened.url = u
	}
	return err
}

// Error names the servers and what is wrong, and what to do about it if that is known.
func (e *openError) Error() string {
	s := fmt.Sprintf("redis: cannot use %s: %v", e.servers(), e.err)
	if advice := e.advice(); advice != "" {
		s += " (" + advice + ")"
	}
	return s
}

func (e *openError) servers() string {
	switch {
	case e.url != nil:
		return strings.Join(e.url.Hosts, ",")
	case len(e.addrs) > 0:
		return strings.Join(e.addrs, ",")
	}
	return "the client's servers"
}

// refused reports whether the servers have said no, and will again.
func (e *openError) refused() bool {
	return judgeError(e.err, e.again).class == denied || strings.Contains(e.err.Error(), "DB index is out of range")
}

// Is matches driver.ErrUnavailable. A refusal does so by what it wraps.
func (e *openError) Is(t error) bool { return t == driver.ErrUnavailable && !e.refused() }

// Unwrap returns what is wrong.
func (e *openError) Unwrap() error {
	if e.refused() {
		return &driver.RefusedError{Op: "open", Err: e.err, Hint: e.advice()}
	}
	return e.err
}

// advice explains what servers and clients say in their own words.
func (e *openError) advice() string {
	text := e.err.Error()
	says := func(part string) bool { return strings.Contains(text, part) }
	switch {
	case e.url == nil:
		return e.adviceOnClient()
	case errors.Is(e.err, errReplica):
		return "name the primary, or let Sentinels find it: redis+sentinel://host1,host2,host3/NAME"
	case errors.Is(e.err, errClusterNode):
		return "write redis+cluster://" + strings.Join(e.url.Hosts, ",")
	case says("unknown command 'SENTINEL'"):
		return "these are servers, not Sentinels: write redis://host, or name the Sentinels"
	case says("NOAUTH") && e.url.Scheme == "redis+sentinel":
		return "user and password in front of the hosts are for the servers; for Sentinels set sentinel-user and sentinel-password"
	case says("NOAUTH"):
		return "the server wants a password: write " + e.url.Scheme + "://user:password@host, or :password@ without a user"
	case says("WRONGPASS"):
		return "user or password is wrong; in a URL, special characters are written as %-escapes"
	case says("NOPERM"):
		return "see the package documentation of redislock for the rights that locking needs"
	case says("DB index is out of range"):
		return "the server has fewer databases"
	case says("No such master"):
		return "the path is the name under which the Sentinels know the primary"
	case says("tls: first record does not look like a TLS"):
		return "the server does not speak TLS there: name its TLS port, or write " + strings.Replace(e.url.Scheme, "rediss", "redis", 1) + ":// without tls=true"
	case says("x509: certificate signed by unknown authority"):
		return "name the file with the authority's certificate: ca=/path/ca.crt"
	case says("certificate required"):
		return "the server wants a client's certificate: cert=/path/client.crt and key=/path/client.key"
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

// adviceOnClient is advice to a program that has made the client itself.
func (e *openError) adviceOnClient() string {
	switch {
	case errors.Is(e.err, errReplica):
		return "give a client of the primary, or one that asks Sentinels for it"
	case errors.Is(e.err, errClusterNode):
		return "give a client for a Cluster: rueidis.NewClient without ForceSingleClient, or redis.NewClusterClient"
	case strings.Contains(e.err.Error(), "NOAUTH"):
		return "the server wants a password: set it in the client's options"
	case errors.Is(e.err, syscall.ECONNREFUSED):
		return refusedHint
	case e.isLate():
		return "the server did not answer in time"
	}
	return judgeError(e.err, e.again).hint
}

// refusedHint is about ports on which nobody listens.
const refusedHint = "is the address right, and does the server run?"

func (e *openError) encrypts() bool { return e.url.Scheme == "rediss" || e.url.Query.Has("tls") }

// isBroken reports whether the server has closed the connection.
func (e *openError) isBroken() bool {
	return errors.Is(e.err, io.EOF) || errors.Is(e.err, syscall.ECONNRESET) || errors.Is(e.err, syscall.EPIPE)
}

// isLate reports whether nobody has answered in time.
func (e *openError) isLate() bool {
	var slow net.Error
	return errors.Is(e.err, context.DeadlineExceeded) || errors.As(e.err, &slow) && slow.Timeout()
}
