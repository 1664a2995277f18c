// The constructors. A plain client is read by direct.go and served by package redislock itself; all others get a
// transport.

package goredislock

import (
	"context"
	"errors"
	"fmt"

	"github.com/interlock-go/interlock/redislock"
	"github.com/redis/go-redis/v9"
)

// Clients that are refused at once.
var (
	errNoClient = errors.New("redis: the client is nil")
	errRing     = errors.New("redis: a Ring decides by itself which server has a key, and decides anew when one does " +
		"not answer: two owners could have one lock. Use a Client, a failover client or a ClusterClient")
)

// New returns a driver for the server or servers of client: a *redis.Client, of one server or of Sentinels, or a
// *redis.ClusterClient. Others are refused, a *redis.Ring because it would break the locks.
//
// A client of one server tells how it connects, and the driver makes two connections of its own in the same way: a lock
// is fast only if pushes and answers come over one connection. Commands go over the client itself (see [NewPooled]) if
// it has Sentinels or a Cluster, or if one of these options is set: TLSConfig, OnConnect, Limiter,
// StreamingCredentialsProvider, Protocol 2.
//
// New subscribes to a channel of the driver's own, which may take 5 seconds, and checks the server's set-up as opts
// say. The driver's Close leaves the client open. A nil opts means the defaults.
func New(client redis.UniversalClient, opts *redislock.Options) (*redislock.Driver, error) {
	c, err := newConn(client)
	if err != nil {
		return nil, err
	}
	if c.single != nil {
		if option, can := direct(c.single); can {
			//nolint:forbidigo // as sql.OpenDB, it takes none
			ctx, cancel := context.WithTimeout(context.Background(), startTime)
			defer cancel()
			return redislock.Connect(ctx, option, opts)
		}
	}
	return redislock.NewConn(c, opts)
}

// NewPooled is New for programs in which each command must go through the client: its hooks and limits then see them,
// and no connection is made except one for pushes, and more in a Cluster. It costs two to three times as much; see
// Costs in the package documentation.
func NewPooled(client redis.UniversalClient, opts *redislock.Options) (*redislock.Driver, error) {
	c, err := newConn(client)
	if err != nil {
		return nil, err
	}
	return redislock.NewConn(c, opts)
}

// newConn returns a transport over client, or says why there is none.
func newConn(client redis.UniversalClient) (*transport, error) {
	c := &transport{feeds: make(map[*redis.Client]*feed)}
	switch client := client.(type) {
	case nil:
		return nil, errNoClient
	case *redis.Client:
		c.single = client
	case *redis.ClusterClient:
		c.cluster = client
	case *redis.Ring:
		return nil, errRing
	default:
		return nil, fmt.Errorf(
			"redis: clients of type %T are not supported: give a *redis.Client or a *redis.ClusterClient", client)
	}
	// A typed nil pointer in the interface is no client either.
	if c.single == nil && c.cluster == nil {
		return nil, errNoClient
	}
	return c, nil
}
