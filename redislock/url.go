// Opening by URL: the schemes, and the options that a URL can carry. topology.go reads the hosts, url_error.go explains
// failures, and driver.go starts the driver.

package redislock

import (
	"context"
	"net"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/enginekit"
	"github.com/interlock-go/interlock/enginekit/address"
	"github.com/interlock-go/interlock/redislock/internal/rueidisconn"
	"github.com/redis/rueidis"
)

func init() {
	for _, scheme := range []string{"redis", "rediss", "redis+sentinel", "redis+cluster"} {
		driver.DefaultMux.Register(scheme, openURL)
	}
}

// dialTimeout bounds the attempt to reach a server when no context does.
const dialTimeout = 5 * time.Second

const (
	// keepAlive is how often rueidis asks on an idle connection whether it lives, which finds dead nodes. Its default
	// is once a second: with a thousand idle clients that was nearly all that the server did. Waits and holds have
	// signs of life of their own.
	keepAlive = 15 * time.Second
	// keepAliveAlone is that interval for a single server: there is no other node to be found, and this connection only
	// stands by.
	keepAliveAlone = time.Minute
	// answerTime is how long rueidis waits for an answer.
	answerTime = 10 * time.Second
	// clientName is the name under which servers list the connections (CLIENT LIST), unless the user gives one.
	clientName = "interlock"
)

// keepAliveOf returns the interval for a single server or for several.
func keepAliveOf(single bool) time.Duration {
	if single {
		return keepAliveAlone
	}
	return keepAlive
}

// openURL returns a driver for u, with a client of its own. It is what driver.DefaultMux calls for these schemes.
func openURL(ctx context.Context, u *driver.URL, c driver.Config) (driver.Driver, error) {
	dial, opts, err := Dialer(u, c)
	if err != nil {
		return nil, err
	}
	over, err := dial(ctx)
	if err != nil {
		return nil, err
	}
	d, err := start(ctx, over, opts)
	if err != nil {
		return nil, withHosts(u, over, err)
	}
	return d, nil
}

// Dialer reads a URL, as the package documentation describes it, and returns a function that connects to its servers,
// and the options in it. It dials nothing itself. It is for packages that put something between a Conn and its driver,
// which then owns the Conn: see [StartConn].
func Dialer(u *driver.URL, c driver.Config) (dial func(ctx context.Context) (Conn, error), opts *Options, err error) {
	o, opts, err := fromURL(u, c)
	if err != nil {
		return nil, nil, err
	}
	return func(ctx context.Context) (Conn, error) {
		c, err := rueidisconn.Open(ctx, o, bundle)
		if err != nil {
			return nil, opening{url: u, err: err, again: u.Scheme != "redis" && u.Scheme != "rediss"}.failed()
		}
		return c, nil
	}, opts, nil
}

// RueidisConn returns the Conn that [New] uses. Its Close leaves the client open.
func RueidisConn(client rueidis.Client) Conn { return rueidisconn.New(client, false) }

// query is what stands behind the question mark and is not part of Options.
type query struct {
	db                             int
	tls                            bool
	files                          address.Encryption
	sentinelUser, sentinelPassword string
}

// fromURL reads what the package documentation describes under URL. It checks everything that can be checked without a
// server.
func fromURL(u *driver.URL, c driver.Config) (rueidis.ClientOption, *Options, error) {
	o := rueidis.ClientOption{
		Username: u.User, Password: u.Password, ClientName: clientName, DisableCache: true,
		Dialer: net.Dialer{Timeout: dialTimeout}, ConnWriteTimeout: answerTime,
		ClientSetInfo: rueidis.DisableClientSetInfo, // which needs a right, and fills the ACL LOG without it
	}
	if err := address.CheckPath("redis", u); err != nil {
		return o, nil, err
	}
	// Keys are taken out of the query as they are read. What is left over is unknown, and refused below.
	p := u.Params()
	opts := &Options{
		Prefix: p.String("prefix", ""), Replicas: p.Int("replicas", 0, 0),
		ReplicaTimeout: p.Duration("replica-timeout", 0), Logger: c.Logger,
	}
	check := p.String("check", "warn")
	q := &query{
		db: p.Int("db", 0, 0), tls: p.Bool("tls", false),
		files:        address.Encryption{CA: p.String("ca", ""), Cert: p.String("cert", ""), Key: p.String("key", "")},
		sentinelUser: p.String("sentinel-user", ""), sentinelPassword: p.String("sentinel-password", ""),
	}
	if err := address.CheckQuery("redis", u, p); err != nil {
		return o, nil, err
	}
	var err error
	if opts.Check, err = enginekit.ParseCheckPolicy("redis", check); err != nil {
		return o, nil, err
	}
	if _, err := opts.withDefaults(); err != nil {
		return o, nil, err
	}
	err = topology(&o, u, q)
	// It depends on the client that topology has chosen.
	o.Dialer.KeepAlive = keepAliveOf(o.ForceSingleClient)
	return o, opts, err
}
