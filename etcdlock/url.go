package etcdlock

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

	"github.com/interlock-go/interlock/driver"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
)

func init() { driver.DefaultMux.Register("etcd", openURL) }

const (
	defaultPort = "2379"

	// dialTime bounds one attempt to connect to a server. Between attempts are firstPause to longestPause.
	dialTime = 3 * time.Second

	// keepaliveTime is after how much silence grpc asks whether a connection is alive, and keepaliveTimeout how long it waits
	// for the answer. Servers refuse more than one question in five seconds, and grpc sends none more often than this.
	keepaliveTime, keepaliveTimeout = 10 * time.Second, 3 * time.Second
)

// openURL returns a driver for u, with a client of its own.
func openURL(ctx context.Context, u *driver.URL, c driver.Config) (driver.Driver, error) {
	config, opts, err := fromURL(u, c)
	if err != nil {
		return nil, err
	}
	limited, cancel := context.WithTimeout(ctx, timeToOpen(ctx, opts.RequestTimeout))
	defer cancel()
	if err := nobodyListens(limited, config.Endpoints); err != nil {
		return nil, &openError{u, err}
	}
	client, err := connect(limited, config)
	if err != nil {
		return nil, &openError{u, explained(ctx, config, err)}
	}
	d, err := start(limited, client, opts, true)
	if err != nil {
		return nil, &openError{u, explained(ctx, config, err)}
	}
	return d, nil
}

// timeToOpen leaves a quarter of the caller's time to find out why there was no answer, see explained.
func timeToOpen(ctx context.Context, most time.Duration) time.Duration {
	if deadline, has := ctx.Deadline(); has {
		return min(most, time.Until(deadline)*3/4)
	}
	return most
}

// connect makes a client. With a password that is a request, of which only the client's own context bounds the time; it
// must not end with ctx, since the client goes on.
func connect(ctx context.Context, config *clientv3.Config) (*clientv3.Client, error) {
	life, stop := context.WithCancel(context.WithoutCancel(ctx))
	config.Context = life
	forget := context.AfterFunc(ctx, stop)
	client, err := clientv3.New(*config)
	if err == nil && forget() {
		return client, nil
	}
	stop()
	if err == nil { // ctx has ended just now
		_ = client.Close()
	}
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	return nil, err
}

// query is what stands behind the question mark and is not of Options.
type query struct {
	tls           bool
	ca, cert, key string
}

// fromURL reads what the package doc describes under URL.
func fromURL(u *driver.URL, c driver.Config) (*clientv3.Config, *Options, error) {
	if err := misplaced(u); err != nil {
		return nil, nil, err
	}
	p := u.Params()
	opts := &Options{
		Prefix: p.String("prefix", ""), RequestTimeout: p.Duration("request-timeout", 0),
		Session: c.Lease, Logger: c.Logger,
	}
	q := &query{tls: p.Bool("tls", false), ca: p.String("ca", ""), cert: p.String("cert", ""), key: p.String("key", "")}
	if err := p.Err(); err != nil {
		return nil, nil, err
	}
	checked, err := opts.withDefaults()
	if err != nil {
		return nil, nil, err
	}
	config := &clientv3.Config{
		Username: u.User, Password: u.Password,
		// An expired token is noticed by its refusal, and the request repeated with a new one. All else is repeated here.
		MaxUnaryRetries:   2,
		DialKeepAliveTime: keepaliveTime, DialKeepAliveTimeout: keepaliveTimeout, PermitWithoutStream: true,
		Logger: zap.NewNop(), // what matters is an error or in Options.Logger
		DialOptions: []grpc.DialOption{grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: firstPause, Multiplier: 1.6, Jitter: 0.2, MaxDelay: longestPause},
			MinConnectTimeout: dialTime,
		})},
	}
	if config.Endpoints, err = endpoints(u); err != nil {
		return nil, nil, err
	}
	config.TLS, err = encryption(q)
	return config, &checked, err
}

// misplaced finds what a URL of this engine does not have, without showing what may be a part of a password.
func misplaced(u *driver.URL) error {
	inQuery := false
	for key, values := range u.Query {
		inQuery = inQuery || strings.Contains(key+strings.Join(values, ""), "@")
	}
	switch {
	case strings.Contains(u.Path, "@"):
		return errors.New("etcd: there is an @ in the path; write a / inside a user or password as %2F")
	case inQuery && u.User+u.Password == "":
		return errors.New("etcd: there is an @ in the query; write a ? inside a user or password as %3F")
	case len(u.Hosts) == 0:
		return errors.New("etcd: the URL names no server; write for instance etcd://localhost or etcd://host1,host2,host3")
	case strings.Trim(u.Path, "/") != "":
		return errors.New("etcd: the URL has a path, which means nothing; for keys of your own write ?prefix=app/")
	case u.Password != "" && u.User == "":
		return errors.New("etcd: the URL has a password but no user; write etcd://user:password@host")
	case u.User != "" && u.Password == "":
		return errors.New("etcd: the URL has a user but no password; write etcd://user:password@host")
	}
	return nil
}

// endpoints are the URL's hosts with their ports.
func endpoints(u *driver.URL) ([]string, error) {
	all := make([]string, len(u.Hosts))
	for i, host := range u.Hosts {
		var err error
		if all[i], err = withPort(host); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// withPort adds the port to a host that has none. An IPv6 address is written in brackets.
func withPort(host string) (string, error) {
	if strings.HasPrefix(host, "[") && strings.HasSuffix(host, "]") && len(host) > len("[]") {
		return net.JoinHostPort(host[1:len(host)-1], defaultPort), nil
	}
	if !strings.ContainsAny(host, ":[]") {
		return net.JoinHostPort(host, defaultPort), nil
	}
	name, port, err := net.SplitHostPort(host)
	switch {
	case err != nil:
		return "", errors.New("etcd: a host cannot be read; write an IPv6 address in brackets, as in [::1]:2379")
	case name == "":
		return "", errors.New("etcd: a host is empty; write for instance localhost:2379")
	}
	if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 {
		return "", fmt.Errorf("etcd: the port of %s is not a number from 1 to 65535", name)
	}
	return host, nil
}

// encryption returns nil if the URL asks for none.
func encryption(q *query) (*tls.Config, error) {
	if !q.tls {
		if q.ca+q.cert+q.key != "" {
			return nil, errors.New("etcd: ca, cert and key are for encrypted connections; write tls=true")
		}
		return nil, nil //nolint:nilnil // nil is what the client takes for plain text
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if q.ca != "" {
		pem, err := os.ReadFile(q.ca)
		if err != nil {
			return nil, fmt.Errorf("etcd: the certificate authority's file: %w", err)
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("etcd: %s has no certificate in PEM", q.ca)
		}
	}
	if (q.cert == "") != (q.key == "") {
		return nil, errors.New("etcd: cert and key belong together")
	}
	if q.cert != "" {
		pair, err := tls.LoadX509KeyPair(q.cert, q.key)
		if err != nil {
			return nil, fmt.Errorf("etcd: the client's certificate: %w", err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c, nil
}
