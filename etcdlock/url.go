// Opening by URL, with a client of our own. driver.go starts the driver.
//
// The client that is made here differs from the library's default where locks would suffer. It logs in again by
// interceptors of our own (login.go), reports requests that never left the process (call.go), repeats nothing by
// itself, and has windows of a fixed size. A client that is given to New has what its maker has set.

package etcdlock

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"net"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/enginekit"
	"github.com/interlock-go/interlock/enginekit/address"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
)

func init() { driver.DefaultMux.Register("etcd", openURL) }

const (
	defaultPort = "2379"

	// dialTime bounds one attempt to connect to a server. The pauses between attempts are firstPause to longestPause.
	dialTime = 3 * time.Second

	// keepaliveTime is the silence after which grpc asks whether a connection lives, and keepaliveTimeout how long it
	// waits for the answer. Servers refuse more than one question in five seconds, and grpc sends none more often than
	// this. That is too slow for waiters, which is why the listener and the heartbeat have limits of their own. It
	// stays as the floor for connections on which nothing else is sent.
	keepaliveTime, keepaliveTimeout = 10 * time.Second, 3 * time.Second

	// window is how much a server may send ahead, on a stream and on the connection, in bytes: enough for the queue of
	// a crowd. If it is not fixed, grpc measures it by a question and an answer beside what it receives, which is every
	// fifth exchange of a lock.
	window = 1 << 20
)

// openURL returns a driver for u, with a client of its own. driver.DefaultMux calls it.
func openURL(ctx context.Context, u *driver.URL, c driver.Config) (driver.Driver, error) {
	config, opts, err := fromURL(u, c)
	if err != nil {
		return nil, err
	}
	limited, cancel := context.WithTimeout(ctx, timeToOpen(ctx, opts.RequestTimeout))
	defer cancel()
	// Refused connections are told at once; the library would try until the time is over.
	if err := nobodyListens(limited, config.Endpoints); err != nil {
		return nil, openError(u, err)
	}
	client, err := connect(limited, config)
	if err != nil {
		return nil, openError(u, explained(ctx, config, err))
	}
	d, err := start(limited, client, opts, true)
	if err != nil {
		return nil, openError(u, explained(ctx, config, err))
	}
	return d, nil
}

// timeToOpen leaves a quarter of the caller's time to find out why there was no answer, see explained. Without it the
// library would use up all of the time, and the user would be told only that it is over.
func timeToOpen(ctx context.Context, most time.Duration) time.Duration {
	if deadline, has := ctx.Deadline(); has {
		return min(most, time.Until(deadline)*3/4)
	}
	return most
}

// connect makes a client, which does not ask the servers for anything yet. The client outlives ctx. The order of the
// interceptors matters: the one that notices unsent requests comes after those of the login, so it sees what grpc says
// of the request itself.
func connect(ctx context.Context, config *clientv3.Config) (*clientv3.Client, error) {
	kept := KeepLoggedIn(*config)
	kept.Context = context.WithoutCancel(ctx)
	kept.DialOptions = append(slices.Clip(kept.DialOptions), grpc.WithChainUnaryInterceptor(noticesUnsent))
	return clientv3.New(kept)
}

// fromURL reads what the package documentation describes under URL. It checks everything that can be checked without a
// server.
func fromURL(u *driver.URL, c driver.Config) (*clientv3.Config, *Options, error) {
	if err := cmp.Or(address.CheckPath("etcd", u), misplaced(u)); err != nil {
		return nil, nil, err
	}
	p := u.Params()
	opts := &Options{
		Prefix: p.String("prefix", ""), RequestTimeout: p.Duration("request-timeout", 0),
		Session: c.Lease, Logger: c.Logger,
	}
	encrypted := p.Bool("tls", false)
	files := address.Encryption{CA: p.String("ca", ""), Cert: p.String("cert", ""), Key: p.String("key", "")}
	if err := address.CheckQuery("etcd", u, p); err != nil {
		return nil, nil, err
	}
	checked, err := opts.withDefaults()
	if err != nil {
		return nil, nil, err
	}
	// A retry of the library would be a copy that this package does not know of, and whose answer may be missing.
	config := &clientv3.Config{
		Username: u.User, Password: u.Password,
		MaxUnaryRetries:   1, // what must be repeated is repeated here
		DialKeepAliveTime: keepaliveTime, DialKeepAliveTimeout: keepaliveTimeout, PermitWithoutStream: true,
		Logger: zap.NewNop(), // what matters is an error or in Options.Logger
		DialOptions: []grpc.DialOption{grpc.WithConnectParams(grpc.ConnectParams{
			Backoff: backoff.Config{
				BaseDelay: firstPause, Multiplier: 1.6, Jitter: 0.2,
				MaxDelay: longestPause,
			},
			MinConnectTimeout: dialTime,
		}), grpc.WithStaticStreamWindowSize(window), grpc.WithStaticConnWindowSize(window)},
	}
	if config.Endpoints, err = address.WithPorts("etcd", u.Hosts, defaultPort); err != nil {
		return nil, nil, err
	}
	config.TLS, err = files.Config("etcd", encrypted, "tls=true")
	return config, &checked, err
}

// misplaced finds what a URL of this engine does not have, without showing what may be a part of a password.
func misplaced(u *driver.URL) error {
	switch {
	case len(u.Hosts) == 0:
		return errors.New("etcd: the URL names no server; write for instance etcd://localhost or " +
			"etcd://host1,host2,host3")
	case strings.Trim(u.Path, "/") != "":
		return errors.New("etcd: the URL has a path, which means nothing; for keys of your own write ?prefix=app/")
	case u.Password != "" && u.User == "":
		return errors.New("etcd: the URL has a password but no user; write etcd://user:password@host")
	case u.User != "" && u.Password == "":
		return errors.New("etcd: the URL has a user but no password; write etcd://user:password@host")
	}
	return nil
}

// Errors of opening by URL, with advice.
//
// The library and grpc give most of these errors as texts only, so they are recognized by their words. A text that a
// later version words otherwise costs the hint and nothing else: whether the outcome is known is decided in call.go.

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

// Probing the way to the servers, for errors of opening and for Diagnose.
//
// The probes make an error come sooner or say more. No lock depends on them, and a probe that finds nothing leaves the
// library's own error as it is. They send no request of etcd, so they need no rights.

// The client library waits for a connection and says only that the time is over when there is none. So what is wrong
// with the way to the servers is found by walking it.

// probeTime bounds the look at one server, and refusalTime how long it may take to refuse a certificate. Both are short
// because they come on top of the caller's time, and servers are probed one after the other. With TLS 1.3 the client's
// handshake ends before the server has looked at its certificate, so the refusal comes in the first read.
const probeTime, refusalTime = time.Second, 200 * time.Millisecond

// probe returns what keeps a client from connecting, or nil if that is not known. It tries the servers in turn.
func probe(ctx context.Context, config *clientv3.Config) error {
	for _, endpoint := range config.Endpoints {
		if err := probeOne(ctx, endpoint, config.TLS); err != nil {
			return err
		}
	}
	return nil
}

// probeOne connects to one server, with TLS if config is not nil, and returns what goes wrong.
func probeOne(ctx context.Context, endpoint string, config *tls.Config) error {
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", endpoint)
	if err != nil {
		return err
	}
	defer conn.Close()
	if config == nil {
		return nil // whether it speaks TLS cannot be seen
	}
	host, _, err := net.SplitHostPort(endpoint)
	if err != nil {
		return err
	}
	config = config.Clone()
	config.ServerName, config.NextProtos = host, []string{"h2"}
	secure := tls.Client(conn, config)
	if err := secure.HandshakeContext(ctx); err != nil {
		return err
	}
	// A server that refuses our certificate, or the lack of one, says so after the handshake.
	if err := secure.SetReadDeadline(time.Now().Add(refusalTime)); err != nil {
		return err
	}
	if _, err := secure.Read(make([]byte, 1)); err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
		return err
	}
	return nil
}

// nobodyListens returns an error if each server refuses connections, or has no address. That will hardly change while
// the client library tries until the time is over, so it is told at once. One server that is silent, or slow, is enough
// to let the library try: it may be about to come up. Names that do not resolve count as refused.
func nobodyListens(ctx context.Context, endpoints []string) (refused error) {
	for _, endpoint := range endpoints {
		err := probeOne(ctx, endpoint, nil)
		var slow net.Error
		switch {
		case err == nil, ctx.Err() != nil, errors.As(err, &slow) && slow.Timeout():
			return nil //nolint:nilerr // the library says how that goes on
		case refused == nil:
			refused = err
		}
	}
	return refused
}

// explained replaces an error that says only that the time is over by the reason, if that can be found.
func explained(ctx context.Context, config *clientv3.Config, err error) error {
	if ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	if why := probe(ctx, config); why != nil {
		return why
	}
	return err
}
