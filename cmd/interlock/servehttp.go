// interlock serve http: mutexes over HTTP. It has the flags and the engine; internal/lockapi answers the requests.

package main

import (
	"context"
	"fmt"
	"net"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/cmd/interlock/internal/webpage"
	"github.com/interlock-go/interlock/driver"
	"github.com/spf13/cobra"
)

const serveHTTPLong = `Serve mutexes over HTTP, for programs in other languages. A program takes a lease, renews it before its deadline
and releases it. A program that stops renewing loses the lock at the deadline. /openapi.json describes all requests.

  curl -d '{"name":"nightly"}' -H 'Content-Type: application/json' http://127.0.0.1:7072/v1/leases

Leases belong to the server that gave them. When it ends, they stay held until their deadlines, and nobody can
renew them.

On the default address only this machine reaches it, and needs no token. Every other address wants --token-file: a
file with lines NAME:TOKEN that only its owner may read (mode 600). Programs send "Authorization: Bearer TOKEN".
Tokens travel in the clear unless --tls-cert and --tls-key are given.

Works on engines whose holds end by a lease, such as Redis.`

func (a *app) serveHTTPCommand() *cobra.Command {
	o := webpage.Locks{Server: webpage.Server{Name: "serve"}}
	cmd := &cobra.Command{
		Use:   "http",
		Short: "Serve mutexes over HTTP, for programs in other languages",
		Long:  serveHTTPLong + aboutNoPage("serve"),
		Args:  noArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return a.serveHTTP(cmd.Context(), &o) },
	}
	cmd.Flags().IntVar(&o.MaxLeases, "max-leases", 10_000,
		"how many leases there are at most, with the requests that wait for one")
	serverFlags(cmd, &o.Server, "127.0.0.1:7072")
	return cmd
}

// serveHTTP serves until a signal comes or ctx ends. It refuses engines whose holds end with the server: programs that
// have a lease would not notice.
func (a *app) serveHTTP(ctx context.Context, o *webpage.Locks) error {
	switch {
	case o.MaxLeases < 1:
		return usage("--max-leases %d must be 1 at least", o.MaxLeases)
	case webpage.ServeLocks == nil:
		return usage("%s", onlyFull("serve"))
	}
	o.Logger, o.Timeout = a.engineWarnings(), a.timeout
	o.Open = func(ctx context.Context) (*interlock.Client, func() error, error) {
		e, err := a.open(ctx, nil)
		if err != nil {
			return nil, nil, err
		}
		if lifetime := e.driver.Traits().Lifetime; lifetime != driver.Leases {
			_ = e.close() // nothing was taken
			return nil, nil, fmt.Errorf("%w: on %s a hold ends with its %s, so locks would be free as soon as this "+
				"server is gone, and programs at work would not know; use an engine with leases, such as Redis",
				interlock.ErrUnsupported, e.url, lifetime)
		}
		return e.client, e.close, nil
	}
	o.Ready = func(address net.Addr) error { return a.sayAddress(&o.Server, "locks", nil, address) }
	return wrongFlag(webpage.ServeLocks(ctx, o))
}
