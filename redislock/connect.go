// Connect, which opens a driver over connections of our own for the options of a rueidis client. url.go does the same
// for a URL, driver.go for a client that exists already.

package redislock

import (
	"cmp"
	"context"
	"time"

	"github.com/interlock-go/interlock/redislock/internal/rueidisconn"
	"github.com/redis/rueidis"
)

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
