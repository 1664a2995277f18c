// Opening by URL, and the advice that its errors carry. driver.go opens; enginekit/address reads hosts and
// certificates.
//
// Errors of opening are the only ones with advice on addresses, ports and certificates: when a session has been there
// once, those are right, and what comes later is a matter of the servers.

package zklock

import (
	"context"
	"errors"
	"net"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/enginekit"
	"github.com/interlock-go/interlock/enginekit/address"
)

func init() { driver.DefaultMux.Register("zk", openURL) }

// The ports of servers whose port the URL does not give.
const (
	defaultPort = "2181"
	securePort  = "2281"
)

// openURL returns a driver for u. driver.DefaultMux calls it.
func openURL(ctx context.Context, u *driver.URL, c driver.Config) (driver.Driver, error) {
	hosts, opts, err := fromURL(u, c)
	if err != nil {
		return nil, err
	}
	var d *Driver
	// Refused connections are told at once; New would try for ten seconds.
	if err = nobodyListens(ctx, hosts); err == nil {
		d, err = New(ctx, hosts, opts)
	}
	if err != nil {
		return nil, openError(hosts, opts, err)
	}
	return d, nil
}

// lookTime bounds the look at one server before the first session. The servers of the list are looked at one after the
// other, so a long list of servers behind a firewall costs a second only: the first that does not answer ends the look.
const lookTime = time.Second

// nobodyListens returns an error if each server refuses connections, or has no address. That will hardly change while
// New tries for ten seconds, so it is told at once. Servers that are silent, or close the connection, may be about to
// come up. It asks nothing and needs no session, so it costs the servers a connection each.
func nobodyListens(ctx context.Context, hosts []string) (refused error) {
	for _, host := range hosts {
		bounded, cancel := context.WithTimeout(ctx, lookTime)
		conn, err := new(net.Dialer).DialContext(bounded, "tcp", host)
		cancel()
		var slow net.Error
		switch {
		case err == nil:
			_ = conn.Close() // it was for nothing else
			return nil
		case ctx.Err() != nil, errors.As(err, &slow) && slow.Timeout():
			return nil //nolint:nilerr // New says how that goes on
		case refused == nil:
			refused = err
		}
	}
	return refused
}

// acls are the values of the query key acl. "auth" stands for whoever has logged in, so the ACL needs no digest of the
// password here.
var acls = map[string][]zk.ACL{
	"":        nil,
	"open":    zk.WorldACL(zk.PermAll),
	"creator": zk.AuthACL(zk.PermAll),
}

// fromURL reads what the package documentation describes under URL. It checks everything that can be checked without a
// server.
func fromURL(u *driver.URL, c driver.Config) (hosts []string, opts *Options, err error) {
	if err := address.CheckPath("zk", u); err != nil {
		return nil, nil, err
	}
	p := u.Params()
	encrypted := p.Bool("tls", false)
	files := address.Encryption{CA: p.String("ca", ""), Cert: p.String("cert", ""), Key: p.String("key", "")}
	acl := p.String("acl", "")
	// After the last key was read: a key that nobody has asked for until then is refused.
	if err := address.CheckQuery("zk", u, p); err != nil {
		return nil, nil, err
	}
	opts = &Options{
		Timeout: c.Lease, Root: u.Path, User: u.User, Password: u.Password, Client: c.Client, Logger: c.Logger,
	}
	var known bool
	if opts.ACL, known = acls[acl]; !known {
		return nil, nil, errors.New("zk: acl is open or creator")
	}
	// The ACL creator stands for the user that has logged in, and there is none.
	if acl == "creator" && u.User == "" {
		return nil, nil, errors.New("zk: acl=creator needs a user: write zk://user:password@host")
	}
	if opts.TLS, err = files.Config("zk", encrypted, "tls=true"); err != nil {
		return nil, nil, err
	}
	if hosts, err = addresses(u.Hosts, encrypted); err != nil {
		return nil, nil, err
	}
	_, err = opts.withDefaults()
	return hosts, opts, err
}

// addresses adds the port to hosts that have none. An IPv6 address is written in brackets.
func addresses(hosts []string, encrypted bool) ([]string, error) {
	if len(hosts) == 0 {
		return nil, errors.New("zk: the URL names no server; write for instance zk://localhost")
	}
	port := defaultPort
	if encrypted {
		port = securePort
	}
	return address.WithPorts("zk", hosts, port)
}

// openError is the error of servers that cannot be used through a URL. The prefix of the package is cut off, because
// the text begins with the engine already.
func openError(hosts []string, opts *Options, err error) error {
	_, denied := denialOf(err)
	return &enginekit.OpenError{
		Engine: "zk", Servers: strings.Join(hosts, ","), Err: err, Text: strings.TrimPrefix(err.Error(), "zk: "),
		Hint: adviceOn(err, opts), Refused: denied,
	}
}

// adviceOn explains what servers and the client library say in their own words. The more specific texts come first.
// They are recognized by their words, because neither the library nor a server has numbers for them. A text that
// changes costs the advice and nothing else.
func adviceOn(err error, opts *Options) string {
	text := err.Error()
	says := func(part string) bool { return strings.Contains(text, part) }
	switch {
	case errors.Is(err, errStrangers):
		return "name the servers of one ensemble; they have server.N lines for each other in zoo.cfg"
	case errors.Is(err, zk.ErrNoAuth) && opts.User == "":
		return "the root is not open to everybody: write zk://user:password@host, or see the ACL of the root and the " +
			"node above it"
	case errors.Is(err, zk.ErrNoAuth):
		return "the root is closed to this user with this password, which the servers do not check in any other way; " +
			"see the ACL of the root and the node above it"
	case errors.Is(err, zk.ErrInvalidACL):
		return "the servers do not take this ACL; acl=creator needs a user"
	case says("first record does not look like a TLS"):
		return "the server does not speak TLS there: name its secureClientPort, or leave out tls=true"
	case says("certificate signed by unknown authority"):
		return "name the file with the authority's certificate: ca=/path/ca.crt"
	case says("certificate required"):
		return "the server wants a client's certificate: cert=/path/client.crt and key=/path/client.key"
	case says("connection refused"), says("no such host"):
		return "is the address right, and does the server run?"
	case says("EOF") && opts.TLS != nil:
		return "does the server speak TLS on this port?"
	case says("EOF"):
		return "the server has closed the connection: is it part of an ensemble that has no leader, does it speak " +
			"TLS on this " +
			"port (tls=true), or has this machine too many connections (maxClientCnxns)?"
	}
	return ""
}
