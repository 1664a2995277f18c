package zklock

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/interlock-go/interlock/driver"
)

func init() { driver.DefaultMux.Register("zk", openURL) }

// The ports of servers that a URL does not name.
const (
	defaultPort = "2181"
	securePort  = "2281"
)

// openURL returns a driver for u.
func openURL(ctx context.Context, u *driver.URL, c driver.Config) (driver.Driver, error) {
	hosts, opts, err := fromURL(u, c)
	if err != nil {
		return nil, err
	}
	var d *Driver
	if err = nobodyListens(ctx, hosts); err == nil {
		d, err = New(ctx, hosts, opts)
	}
	if err != nil {
		return nil, &openError{hosts: hosts, user: opts.User, secure: opts.TLS != nil, err: err}
	}
	return d, nil
}

// lookTime bounds the look at one server before the first session.
const lookTime = time.Second

// nobodyListens returns an error if each server refuses connections, or has no address: that will hardly change while New
// tries for ten seconds, so it is told at once. Servers that are silent, or close the connection, may be about to come.
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

// acls are the values of the query key acl.
var acls = map[string][]zk.ACL{
	"":        nil,
	"open":    zk.WorldACL(zk.PermAll),
	"creator": zk.AuthACL(zk.PermAll),
}

// fromURL reads what the package doc describes under URL.
func fromURL(u *driver.URL, c driver.Config) (hosts []string, opts *Options, err error) {
	if strings.Contains(u.Path, "@") { // later errors would show the rest of a password as a path
		return nil, nil, errors.New("zk: there is an @ in the path; write a / inside a user or password as %2F")
	}
	p := u.Params()
	encrypted := p.Bool("tls", false)
	ca, cert, key := p.String("ca", ""), p.String("cert", ""), p.String("key", "")
	acl := p.String("acl", "")
	if err := readQuery(u, p); err != nil {
		return nil, nil, err
	}
	opts = &Options{
		Timeout: c.Lease, Root: u.Path, User: u.User, Password: u.Password, Client: c.Client, Logger: c.Logger,
	}
	var known bool
	if opts.ACL, known = acls[acl]; !known {
		return nil, nil, errors.New("zk: acl is open or creator")
	}
	if acl == "creator" && u.User == "" {
		return nil, nil, errors.New("zk: acl=creator needs a user: write zk://user:password@host")
	}
	if opts.TLS, err = encryption(encrypted, ca, cert, key); err != nil {
		return nil, nil, err
	}
	if hosts, err = addresses(u.Hosts, encrypted); err != nil {
		return nil, nil, err
	}
	_, err = opts.withDefaults()
	return hosts, opts, err
}

// readQuery returns the error of the query. It must not show the rest of a password whose ? has ended it: then the @ that
// follows it is in the query, and nothing is in front of the hosts.
func readQuery(u *driver.URL, p *driver.Params) error {
	err := p.Err()
	if err == nil || u.User+u.Password != "" {
		return err
	}
	for key, values := range u.Query {
		if strings.Contains(key+strings.Join(values, ""), "@") {
			return errors.New("zk: there is an @ in the query; write a ? inside a user or password as %3F")
		}
	}
	return err
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
	all := make([]string, 0, len(hosts))
	for _, host := range hosts {
		address, err := withPort(host, port)
		if err != nil {
			return nil, err
		}
		all = append(all, address)
	}
	return all, nil
}

func withPort(host, port string) (string, error) {
	if strings.HasPrefix(host, "[") && strings.HasSuffix(host, "]") && len(host) > len("[]") {
		return net.JoinHostPort(host[1:len(host)-1], port), nil
	}
	name, given, err := net.SplitHostPort(host)
	if err != nil {
		if strings.ContainsAny(host, ":[]") {
			return "", errors.New("zk: a host cannot be read; write an IPv6 address in brackets, as in [::1]:2181")
		}
		return net.JoinHostPort(host, port), nil
	}
	if name == "" {
		return "", errors.New("zk: a host is empty; write for instance localhost:2181")
	}
	if n, err := strconv.Atoi(given); err != nil || n < 1 || n > 65535 {
		return "", fmt.Errorf("zk: the port of %s is not a number from 1 to 65535", name)
	}
	return host, nil
}

// encryption returns what TLS needs, or nil for plain connections.
func encryption(encrypted bool, ca, cert, key string) (*tls.Config, error) {
	switch {
	case !encrypted && ca+cert+key != "":
		return nil, errors.New("zk: ca, cert and key are for encrypted connections; write tls=true")
	case !encrypted:
		return nil, nil //nolint:nilnil // none, and that is no error
	case (cert == "") != (key == ""):
		return nil, errors.New("zk: cert and key go together")
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if ca != "" {
		pem, err := os.ReadFile(ca)
		if err != nil {
			return nil, fmt.Errorf("zk: ca: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("zk: ca: there is no certificate in %s", ca)
		}
	}
	if cert != "" {
		pair, err := tls.LoadX509KeyPair(cert, key)
		if err != nil {
			return nil, fmt.Errorf("zk: cert and key: %w", err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}

// openError says that no lock can be taken through a URL: no server can be reached, or they do not let us in. It matches
// driver.ErrUnavailable.
type openError struct {
	hosts  []string
	user   string
	secure bool
	err    error
}

// Error names the servers and what is wrong, and what to do about it if that is known.
func (e *openError) Error() string {
	s := fmt.Sprintf("zk: cannot use %s: %s", strings.Join(e.hosts, ","), strings.TrimPrefix(e.err.Error(), "zk: "))
	if advice := e.advice(); advice != "" {
		s += " (" + advice + ")"
	}
	return s
}

// Is matches driver.ErrUnavailable.
func (e *openError) Is(t error) bool { return t == driver.ErrUnavailable }

// Unwrap returns what is wrong.
func (e *openError) Unwrap() error { return e.err }

func (e *openError) advice() string {
	text := e.err.Error()
	says := func(part string) bool { return strings.Contains(text, part) }
	switch {
	case errors.Is(e.err, zk.ErrNoAuth) && e.user == "":
		return "the root is not open to everybody: write zk://user:password@host, or see the ACL of the root and the node above it"
	case errors.Is(e.err, zk.ErrNoAuth):
		return "the root is closed to this user with this password, which the servers do not check in any other way; " +
			"see the ACL of the root and the node above it"
	case errors.Is(e.err, zk.ErrInvalidACL):
		return "the servers do not take this ACL; acl=creator needs a user"
	case says("first record does not look like a TLS"):
		return "the server does not speak TLS there: name its secureClientPort, or leave out tls=true"
	case says("certificate signed by unknown authority"):
		return "name the file with the authority's certificate: ca=/path/ca.crt"
	case says("certificate required"):
		return "the server wants a client's certificate: cert=/path/client.crt and key=/path/client.key"
	case says("connection refused"), says("no such host"):
		return "is the address right, and does the server run?"
	case says("EOF") && e.secure:
		return "does the server speak TLS on this port?"
	case says("EOF"):
		return "the server has closed the connection: is it part of an ensemble that has no leader, does it speak TLS on this " +
			"port (tls=true), or has this machine too many connections (maxClientCnxns)?"
	}
	return ""
}
