package redislock

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/servers"
	"github.com/redis/rueidis"
)

// enter takes a lock by a name, for a minute.
func enter(t *testing.T, d *Driver, name string) error {
	t.Helper()
	_, err := d.Acquire(t.Context(), &driver.Request{
		Key: driver.Key{Kind: driver.KindMutex, Name: name}, ID: "id-of-" + name, Owner: "o", Lease: time.Minute,
		Tokens: 1,
	})
	return err
}

func TestConnect_TakesOverHowAClientConnects(t *testing.T) {
	s := servers.RedisServer(t, &servers.RedisOptions{Users: []string{"bob on >secret ~* &* +@all"}})
	var dialled, asked atomic.Int64
	dial := func(ctx context.Context, d *net.Dialer) (net.Conn, error) {
		dialled.Add(1)
		return d.DialContext(ctx, "tcp", s.Addr())
	}
	direct := rueidis.ClientOption{
		DialCtxFn: func(ctx context.Context, _ string, d *net.Dialer, _ *tls.Config) (net.Conn, error) {
			return dial(ctx, d)
		},
	}
	old := rueidis.ClientOption{
		DialFn: func(_ string, d *net.Dialer, _ *tls.Config) (net.Conn, error) {
			return dial(context.WithoutCancel(t.Context()), d)
		},
	}
	wraps := rueidis.ClientOption{
		DialCtxFn: func(ctx context.Context, _ string, d *net.Dialer, _ *tls.Config) (net.Conn, error) {
			c, err := dial(ctx, d)
			return struct{ net.Conn }{c}, err
		},
	}
	oldProtocol := direct
	oldProtocol.AlwaysRESP2 = true
	for name, o := range map[string]rueidis.ClientOption{
		"DialCtxFn": direct, "DialFn": old, "wrapped": wraps, "AlwaysRESP2": oldProtocol,
	} {
		t.Run(name, func(t *testing.T) {
			o.InitAddress, o.ForceSingleClient, o.SelectDB = []string{"only the dialer knows:1"}, true, 2
			o.AuthCredentialsFn = func(c rueidis.AuthCredentialsContext) (rueidis.AuthCredentials, error) {
				if c.Address == nil || c.Address.String() != s.Addr() {
					return rueidis.AuthCredentials{}, errors.New("asked for another server")
				}
				asked.Add(1)
				return rueidis.AuthCredentials{Username: "bob", Password: "secret"}, nil
			}
			dialled.Store(0)
			asked.Store(0)
			d, err := Connect(t.Context(), o, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer d.Close()
			if err := enter(t, d, name); err != nil {
				t.Error(err)
			}
			if asked.Load() < 2 || asked.Load() > dialled.Load() { // a connection that cannot be used is closed at once
				t.Errorf("%d connections, for %d of which user and password were asked", dialled.Load(), asked.Load())
			}
		})
	}
}

func TestConnect_ThatCannot_SaysWhereAndWhy(t *testing.T) {
	addr := servers.Redis(t)
	refuses := func(rueidis.AuthCredentialsContext) (rueidis.AuthCredentials, error) {
		return rueidis.AuthCredentials{}, errors.New("the vault is closed")
	}
	for says, try := range map[string]struct {
		client rueidis.ClientOption
		opts   *Options
	}{
		"does the server run?": {
			rueidis.ClientOption{InitAddress: []string{"127.0.0.1:1"}, ForceSingleClient: true}, nil,
		},
		"prefix":              {rueidis.ClientOption{InitAddress: []string{addr}}, &Options{Prefix: "{"}},
		"the vault is closed": {rueidis.ClientOption{InitAddress: []string{addr}, AuthCredentialsFn: refuses}, nil},
		"no alive address":    {rueidis.ClientOption{}, nil},
	} {
		_, err := Connect(t.Context(), try.client, try.opts)
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, want an error that says %q", err, says)
		}
	}
}

func TestConnect_ToAServerThatHangs_EndsWithItsContext(t *testing.T) {
	proxy := servers.NewProxy(t, servers.Redis(t))
	proxy.BlackHole(servers.BothWays)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	client := rueidis.ClientOption{InitAddress: []string{proxy.Addr()}, ForceSingleClient: true}
	if _, err := Connect(ctx, client, nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}
