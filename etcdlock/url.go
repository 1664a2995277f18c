// Opening by URL, with a client of our own. driver.go starts the driver; url_error.go and url_probe.go explain
// failures.
//
// The client that is made here differs from the library's default where locks would suffer. It logs in again by
// interceptors of our own (login.go), reports requests that never left the process (outcome.go), repeats nothing by
// itself, and has windows of a fixed size. A client that is given to New has what its maker has set.

package etcdlock

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/interlock-go/interlock/driver"
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
