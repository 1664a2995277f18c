// interlock serve http: mutexes over HTTP. It has the flags and the engine; internal/lockapi answers the requests.
// Read/write locks, semaphores and elections are not served.

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

// It begins with the duty to renew, because the server does not renew for a program.
const serveHTTPLong = `Serve mutexes over HTTP, for programs in other languages. A program takes a lease, renews it
before its deadline and releases it. A program that stops renewing loses the lock at the
deadline. /openapi.json describes all requests.

  curl -d '{"name":"nightly"}' -H 'Content-Type: application/json' http://127.0.0.1:7072/v1/leases

A lease belongs to the server that granted it. When that server ends, its leases stay held until
their deadlines, and cannot be renewed.

The default address accepts connections from this machine only, and needs no token. Requests
that a web page sends through a browser are refused, as are host names other than localhost, an
address or a --host. Every other address requires --token-file: a file with lines NAME:TOKEN
that only its owner may read (mode 600). Programs send "Authorization: Bearer TOKEN". Without
--tls-cert and --tls-key, tokens are sent unencrypted.

serve http works on engines whose holds end with a lease, such as Redis.`

// serveHTTPCommand describes serve http. --max-leases bounds what clients can make this process keep: each lease and
// each request that waits needs memory here.
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
		"maximum number of leases and waiting requests together")
	serverFlags(cmd, &o.Server, "127.0.0.1:7072")
	return cmd
}

// serveHTTP serves until a signal comes or ctx ends. It refuses engines whose holds end with the server: programs that
// have a lease would not notice.
//
// The server never renews a lease by itself: it would keep the lock of a program that has died (docs/rationale.md,
// Locks over HTTP).
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
		// It can be known only now that the engine is open. No request has been answered yet, so no client has got
		// anything.
		if lifetime := e.driver.Traits().Lifetime; lifetime != driver.Leases {
			_ = e.close() // nothing was taken
			return nil, nil, fmt.Errorf("%w: on %s a hold ends with its %s, so locks would be free as soon as this "+
				"server is gone, and programs at work would not know; use an engine with leases, such as Redis",
				interlock.ErrUnsupported, e.url, lifetime)
		}
		// At the end lockapi abandons the leases, so that close gives none of them back: programs are at work under
		// them (docs/rationale.md, Locks over HTTP).
		return e.client, e.close, nil
	}
	o.Ready = func(address net.Addr) error { return a.sayAddress(&o.Server, "locks", address) }
	return wrongFlag(webpage.ServeLocks(ctx, o))
}
