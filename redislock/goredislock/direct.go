// How to connect as a go-redis client does, so that a driver can have connections of its own (docs/rationale.md, Our
// own connection). driver.go asks here first.

package goredislock

import (
	"context"
	"crypto/tls"
	"net"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
)

// credentialsTime bounds the question for user and password, which comes without a caller's context.
const credentialsTime = 10 * time.Second

// direct returns how to connect to the server of client as the client does itself, for a driver with connections of its
// own. It reports false for a client of several servers. It also does for a client that does more for a connection or a
// command than such a driver can: OnConnect, a Limiter, credentials that are renewed on a living connection, RESP2, and
// TLS, which is inside the dialer.
func direct(client *redis.Client) (rueidis.ClientOption, bool) {
	o := client.Options()
	special := o.OnConnect != nil || o.Limiter != nil || o.StreamingCredentialsProvider != nil || o.Protocol == 2 ||
		o.TLSConfig != nil
	if o.Addr == ofSentinels || special {
		return rueidis.ClientOption{}, false
	}
	return rueidis.ClientOption{
		InitAddress: []string{o.Addr}, ForceSingleClient: true,
		// The client's own dialer, so that proxies and tunnels of the user work as before.
		DialCtxFn: func(ctx context.Context, addr string, _ *net.Dialer, _ *tls.Config) (net.Conn, error) {
			return o.Dialer(ctx, o.Network, addr)
		},
		Username: o.Username, Password: o.Password, AuthCredentialsFn: credentials(o), SelectDB: o.DB,
		ClientName: o.ClientName,
	}, true
}

// credentials returns a function that gives user and password for each connection, or nil if they do not change. The
// order is that of go-redis: the provider with a context comes first.
func credentials(o *redis.Options) func(rueidis.AuthCredentialsContext) (rueidis.AuthCredentials, error) {
	switch {
	case o.CredentialsProviderContext != nil:
		return func(rueidis.AuthCredentialsContext) (rueidis.AuthCredentials, error) {
			//nolint:forbidigo // rueidis gives none
			ctx, cancel := context.WithTimeout(context.Background(), credentialsTime)
			defer cancel()
			user, password, err := o.CredentialsProviderContext(ctx)
			return rueidis.AuthCredentials{Username: user, Password: password}, err
		}
	case o.CredentialsProvider != nil:
		return func(rueidis.AuthCredentialsContext) (rueidis.AuthCredentials, error) {
			user, password := o.CredentialsProvider()
			return rueidis.AuthCredentials{Username: user, Password: password}, nil
		}
	}
	return nil
}
