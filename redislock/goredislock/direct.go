package goredislock

import (
	"context"
	"crypto/tls"
	"net"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
)

// credentialsTime bounds the question for user and password, which has no context of a caller.
const credentialsTime = 10 * time.Second

// direct returns how to connect to the server of client as it does itself, for a driver with connections of its own.
// It reports false for a client of several servers, and for one that does more for a connection or a command than
// such a driver can: OnConnect, a Limiter, credentials that are renewed on a living connection, RESP2, and TLS, which
// is inside of the dialer.
func direct(client *redis.Client) (rueidis.ClientOption, bool) {
	o := client.Options()
	special := o.OnConnect != nil || o.Limiter != nil || o.StreamingCredentialsProvider != nil || o.Protocol == 2 ||
		o.TLSConfig != nil
	if o.Addr == ofSentinels || special {
		return rueidis.ClientOption{}, false
	}
	return rueidis.ClientOption{
		InitAddress: []string{o.Addr}, ForceSingleClient: true,
		DialCtxFn: func(ctx context.Context, addr string, _ *net.Dialer, _ *tls.Config) (net.Conn, error) {
			return o.Dialer(ctx, o.Network, addr)
		},
		Username: o.Username, Password: o.Password, AuthCredentialsFn: credentials(o), SelectDB: o.DB,
		ClientName: o.ClientName,
	}, true
}

// credentials returns what gives user and password for each connection, or nil if they do not change.
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
