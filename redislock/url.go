// Opening with connections of our own: by URL, or by the options of a rueidis client. driver.go starts the driver.
// First the schemes, and the options that a URL can carry.

package redislock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/enginekit"
	"github.com/interlock-go/interlock/enginekit/address"
	"github.com/interlock-go/interlock/redislock/conn"
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

// The topology part of a URL: hosts, path, database and TLS.

// The ports of servers and Sentinels that a URL does not give.
const (
	serverPort   = "6379"
	sentinelPort = "26379"
)

// topology fills in the servers' addresses, the meaning of the path, and TLS. The scheme decides about all three.
func topology(o *rueidis.ClientOption, u *driver.URL, q *query) error {
	if len(u.Hosts) == 0 {
		return fmt.Errorf("redis: the URL names no server; write for instance %s://localhost", u.Scheme)
	}
	path := strings.Trim(u.Path, "/")
	port := serverPort
	if u.Scheme != "redis+sentinel" && (q.sentinelUser != "" || q.sentinelPassword != "") {
		return errors.New("redis: sentinel-user and sentinel-password are for redis+sentinel:// only")
	}
	switch u.Scheme {
	case "redis+sentinel":
		if err := checkPrimary(path); err != nil {
			return err
		}
		o.Sentinel = rueidis.SentinelOption{MasterSet: path, Username: q.sentinelUser, Password: q.sentinelPassword}
		port, path = sentinelPort, ""
	case "redis+cluster":
		// Clients with the same URL would otherwise all ask the first node for the slots.
		o.ShuffleInit = true
		if path != "" || q.db != 0 {
			return errors.New("redis: a Cluster has no numbered databases; leave the path and db out of the URL")
		}
	default:
		if len(u.Hosts) > 1 {
			return fmt.Errorf(
				"redis: %s:// takes one server; for several write redis+sentinel://, redis+cluster:// or redlock://",
				u.Scheme)
		}
		// Without this, rueidis asks the server whether it belongs to a Cluster.
		o.ForceSingleClient = true
	}
	if err := q.setDatabase(path); err != nil {
		return err
	}
	o.SelectDB = q.db
	var err error
	if o.InitAddress, err = address.WithPorts("redis", u.Hosts, port); err != nil {
		return err
	}
	return encrypt(o, u, q)
}

// checkPrimary refuses a name that no Sentinel can have for a primary.
func checkPrimary(name string) error {
	if name == "" {
		return errors.New(
			"redis: the URL names no primary; write redis+sentinel://host1,host2,host3/NAME, as the Sentinels call it")
	}
	if strings.ContainsFunc(name, notInName) {
		return errors.New(
			"redis: the name of a primary has letters, digits, dots, dashes and underscores; a database is set by db")
	}
	return nil
}

// setDatabase takes the number of the database from the URL's path, if it has one. The key db may repeat it.
func (q *query) setDatabase(path string) error {
	if path == "" {
		return nil
	}
	db, err := strconv.Atoi(path)
	if err != nil || db < 0 {
		return errors.New("redis: the path is the number of a database, as in redis://host/0")
	}
	if q.db != 0 && q.db != db {
		return errors.New("redis: the path and db name different databases")
	}
	q.db = db
	return nil
}

// notInName reports whether Sentinel refuses r in the name of a primary.
func notInName(r rune) bool {
	letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
	return !letter && !(r >= '0' && r <= '9') && !strings.ContainsRune(".-_", r)
}

// encrypt sets up TLS if the URL asks for it.
func encrypt(o *rueidis.ClientOption, u *driver.URL, q *query) error {
	if u.Scheme == "rediss" && u.Query.Has("tls") && !q.tls {
		return errors.New("redis: rediss:// and tls=false contradict each other")
	}
	c, err := q.files.Config("redis", u.Scheme == "rediss" || q.tls, "rediss:// or tls=true")
	if err != nil {
		return err
	}
	o.TLSConfig = c
	// The Sentinels are reached in the same way as the servers behind them.
	if u.Scheme == "redis+sentinel" {
		o.Sentinel.TLSConfig = c
	}
	return nil
}

// Connect, which does the same for the options of a rueidis client.

// Connect returns a driver for the servers that the options of a rueidis client name, over connections of the driver's
// own. It is as fast as a driver opened by URL, and faster than [New]: over a client of yours, calls cannot share a run
// of a script. Use it where a URL cannot say how to connect.
//
// It takes over InitAddress, Sentinel, user, password and AuthCredentialsFn, SelectDB, ClientName, TLSConfig, the
// dialers, ClientSetInfo, ConnWriteTimeout, ClusterOption, ForceSingleClient, ShuffleInit and AlwaysRESP2. Options
// about caches, replicas, pools and pipelines have no effect. A dialer whose connections are neither a *net.TCPConn nor
// a *net.UnixConn makes the driver as slow as New, and so does AlwaysRESP2. Broken connections are made anew;
// RefreshAfter of credentials has no effect.
//
// Connect blocks until the server has answered and the start-up check is done, or until ctx ends: an error that matches
// ctx's says that the server has not answered by then. A nil opts means the defaults.
func Connect(ctx context.Context, client rueidis.ClientOption, opts *Options) (*Driver, error) {
	// Options are checked before anything is dialed, so that a typing error costs no connection.
	if _, err := opts.withDefaults(); err != nil {
		return nil, err
	}
	over, err := rueidisconn.Open(ctx, connectOption(&client), bundle)
	if err != nil {
		return nil, opening{addrs: client.InitAddress, err: err, again: !client.ForceSingleClient}.failed()
	}
	return start(ctx, over, opts)
}

// sentinelRefresh is how often a Sentinel is asked who the primary is. Clients learn of a failover by a message. A
// client that missed it would go on asking a server that has become a replica, and that closes no connection. rueidis
// recommends this value.
const sentinelRefresh = 5 * time.Second

// connectOption copies the options that matter, and fills in ours where the caller has set none.
func connectOption(c *rueidis.ClientOption) rueidis.ClientOption {
	o := rueidis.ClientOption{
		InitAddress: c.InitAddress, Sentinel: c.Sentinel, ClusterOption: c.ClusterOption,
		ForceSingleClient: c.ForceSingleClient, ShuffleInit: c.ShuffleInit, AlwaysRESP2: c.AlwaysRESP2,
		Username: c.Username, Password: c.Password, AuthCredentialsFn: c.AuthCredentialsFn, SelectDB: c.SelectDB,
		ClientName: cmp.Or(c.ClientName, clientName), TLSConfig: c.TLSConfig,
		Dialer: c.Dialer, DialCtxFn: c.DialCtxFn,
		DialFn:           c.DialFn,
		ConnWriteTimeout: cmp.Or(c.ConnWriteTimeout, answerTime), DisableCache: true,
		ClientSetInfo: c.ClientSetInfo,
	}
	if len(o.ClientSetInfo) == 0 { // it needs a right, and fills the ACL LOG without it
		o.ClientSetInfo = rueidis.DisableClientSetInfo
	}
	o.Sentinel.TopologyRefreshInterval = cmp.Or(o.Sentinel.TopologyRefreshInterval, sentinelRefresh)
	o.Dialer.Timeout = cmp.Or(o.Dialer.Timeout, dialTimeout)
	o.Dialer.KeepAlive = cmp.Or(o.Dialer.KeepAlive, keepAliveOf(o.ForceSingleClient))
	return o
}

// Errors of the start, with the servers that they are about and what to do.

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
