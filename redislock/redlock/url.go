// Opening by URL: one URL of redislock for each host. driver.go opens the nodes.

package redlock

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/redislock"
)

func init() { driver.DefaultMux.Register("redlock", openURL) }

// keys are the query keys of a redlock:// URL.
var keys = []string{"ca", "cert", "check", "db", "former", "key", "longest-lease", "node-timeout", "prefix", "tls"}

// openURL returns a driver for u, with clients of its own.
func openURL(ctx context.Context, u *driver.URL, c driver.Config) (driver.Driver, error) {
	dials, opts, err := fromURL(u, c)
	if err != nil {
		return nil, err
	}
	return open(ctx, dials, opts)
}

// dialer connects to one node.
type dialer struct {
	name    string // as the user has written it
	dial    func(ctx context.Context) (redislock.Conn, error)
	address string // of the server, if name is not that
	former  bool   // it is of the former set, while that is being changed
	dropped bool   // it is not of the current one
}

// place is the name of the node's place in its set: the address with the port, also where the user has left that out.
func (d *dialer) place() string {
	address := cmp.Or(d.address, d.name)
	if _, _, err := net.SplitHostPort(address); err != nil && !strings.Contains(address, "/") {
		address = net.JoinHostPort(strings.Trim(address, "[]"), "6379")
	}
	return address
}

// fromURL reads what the package documentation describes under URL. It makes a URL of redislock for each host, with the
// same credentials.
func fromURL(u *driver.URL, c driver.Config) ([]dialer, *Options, error) {
	// A slash in a password ends the host part early, and the rest of the password would be a path.
	if strings.Contains(u.Path, "@") || strings.ContainsAny(u.Path, ",:") {
		return nil, nil, fmt.Errorf(
			"redlock: there is an @, a comma or a colon in the path; write a / inside a user or password as %%2F")
	}
	if len(u.Hosts) == 0 {
		return nil, nil, fmt.Errorf("redlock: the URL names no server; write for instance redlock://h1,h2,h3,h4,h5")
	}
	for key, values := range u.Query {
		if strings.Contains(key+strings.Join(values, ""), "@") && u.User+u.Password == "" {
			return nil, nil, fmt.Errorf(
				"redlock: there is an @ in the query; write a ? inside a user or password as %%3F")
		}
		if !slices.Contains(keys, key) {
			return nil, nil, fmt.Errorf("redlock: unknown query key %q: this engine takes %s",
				key, strings.Join(keys, ", "))
		}
	}
	p := u.Params()
	opts := &Options{
		LongestLease: p.Duration("longest-lease", 0), NodeTimeout: p.Duration("node-timeout", 0),
		Prefix: p.String("prefix", ""), Logger: c.Logger,
	}
	for _, key := range keys {
		p.String(key, "")
	}
	if err := p.Err(); err != nil {
		return nil, nil, err
	}
	former := formerOf(u)
	var dials []dialer
	for _, host := range unionOf(u.Hosts, former) {
		node := *u
		node.Scheme, node.Hosts, node.Query = "redis", []string{host}, maps.Clone(u.Query)
		// These are ours; redislock would refuse them.
		for _, key := range []string{"longest-lease", "node-timeout", "former"} {
			delete(node.Query, key)
		}
		dial, read, err := redislock.Dialer(&node, c)
		if err != nil {
			return nil, nil, err
		}
		opts.Check = read.Check
		dials = append(dials, dialer{
			name: host, dial: dial, former: slices.Contains(former, host), dropped: !slices.Contains(u.Hosts, host),
		})
	}
	return dials, opts, nil
}

// formerOf returns the servers of the query key former, as they are written.
func formerOf(u *driver.URL) (hosts []string) {
	for _, value := range u.Query["former"] {
		hosts = append(hosts, strings.Split(value, ",")...)
	}
	return hosts
}

// unionOf returns the hosts, and those of the former ones that are not among them. What was named twice stays twice, so
// that it is refused.
func unionOf(hosts, former []string) []string {
	all := slices.Clone(hosts)
	for _, host := range former {
		if !slices.Contains(hosts, host) {
			all = append(all, host)
		}
	}
	return all
}
