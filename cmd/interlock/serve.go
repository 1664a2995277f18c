// interlock serve: states of Terraform behind locks (serve terraform), and mutexes over HTTP (serve http). Like
// console.go it has the flags, the engine and what is printed; internal/webpage serves, in the full build alone, and
// internal/lockapi answers for mutexes. The two servers differ in who renews: a run of Terraform cannot, so its lock
// is renewed here; programs renew theirs by themselves (docs/rationale.md, Terraform and Locks over HTTP).

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/cmd/interlock/internal/webpage"
	"github.com/interlock-go/interlock/driver"
	"github.com/spf13/cobra"
)

// serveCommand describes serve, which has commands of its own and does nothing without one.
//
// Without one it prints its help, as interlock does.
func (a *app) serveCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "serve",
		Short:   "Serve locks to Terraform and to programs in other languages",
		Long:    "Serve locks to programs that are not written in Go." + aboutNoPage("serve"),
		GroupID: "jobs",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usage("interlock serve has no command %q; it has http and terraform", args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.serveHTTPCommand(), a.serveTerraformCommand())
	return cmd
}

// serverFlags are the flags that all servers have. A server that listens beyond loopback without --token-file does not
// start; package serve refuses that.
func serverFlags(cmd *cobra.Command, o *webpage.Server, listen string) {
	flags := cmd.Flags()
	flags.StringVar(&o.Listen, "listen", listen, "address to listen on; port 0 chooses a free port")
	flags.StringVar(&o.TokenFile, "token-file", "",
		"file with lines NAME:TOKEN; a client without one of these tokens is refused")
	flags.StringSliceVar(&o.Hosts, "host", nil, "a name by which clients reach the server; may be repeated")
	flags.StringVar(&o.TLSCert, "tls-cert", "", "file with the certificate, in PEM")
	flags.StringVar(&o.TLSKey, "tls-key", "", "file with the certificate's key, in PEM")
}

// wrongFlag makes wrong use of a flag that only the server could find wrong, so that it is told like every other.
//
// The exit code is 64, and the usage line follows.
func wrongFlag(err error) error {
	var wrong webpage.FlagError
	if errors.As(err, &wrong) {
		return usage("%v", wrong)
	}
	return err
}

// The block can be copied as it stands: Terraform wants all three addresses, although they are one.
const serveTerraformLong = `Serve states of Terraform and OpenTofu, for their backend "http". While a run has a state
locked, no other run gets the lock, from any server with the same engine and folder. Only the
holder of the lock can write the state, and fencing protects each write.

  terraform {
    backend "http" {
      address        = "http://127.0.0.1:7071/network"
      lock_address   = "http://127.0.0.1:7071/network"
      unlock_address = "http://127.0.0.1:7071/network"
    }
  }

A run that was killed keeps its lock until "terraform force-unlock", or until --max-hold is
over. The locks of this server end with it.

The default address accepts connections from this machine only, and needs no token. Requests
that a web page sends through a browser are refused, as are host names other than localhost, an
address or a --host. Every other address requires --token-file: a file with lines NAME:TOKEN
that only its owner may read (mode 600). Runs send them as TF_HTTP_USERNAME and
TF_HTTP_PASSWORD. Without --tls-cert and --tls-key, states and tokens are sent unencrypted.`

// serveTerraformCommand describes serve terraform. --dir has no default, because states that were written to the wrong
// folder look lost.
func (a *app) serveTerraformCommand() *cobra.Command {
	o := webpage.States{Server: webpage.Server{Name: "serve"}}
	cmd := &cobra.Command{
		Use:   "terraform --dir FOLDER",
		Short: "Serve states of Terraform and OpenTofu",
		Long:  serveTerraformLong + aboutNoPage("serve"),
		Args:  noArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return a.serveTerraform(cmd.Context(), &o) },
	}
	flags := cmd.Flags()
	flags.StringVar(&o.Folder, "dir", "", "folder of the states, created if it does not exist; required")
	flags.Var(durationOf(&o.MaxHold, 0), "max-hold", "maximum time that a run keeps its lock; 0 means no limit")
	serverFlags(cmd, &o.Server, "127.0.0.1:7071")
	return cmd
}

// serveTerraform serves until a signal comes or ctx ends. Mistakes in the flags are told before the engine is asked.
//
// The engine is opened by serve, after it has found the flags to be good.
func (a *app) serveTerraform(ctx context.Context, o *webpage.States) error {
	switch {
	case o.Folder == "":
		return usage("--dir is missing: the folder of the states, such as /var/lib/terraform")
	// 0 is no limit: a run may take hours, and cannot renew (docs/rationale.md, Terraform).
	case o.MaxHold < 0:
		return usage("--max-hold %v must not be negative", o.MaxHold)
	case webpage.ServeStates == nil:
		return usage("%s", onlyFull("serve"))
	}
	// A folder that is not there is made later; a file in its place would only fail then.
	if info, err := os.Stat(o.Folder); err == nil && !info.IsDir() {
		return usage("--dir %s is not a folder", o.Folder)
	}
	o.Logger = a.engineWarnings()
	// serve calls it once, when the port is open and the tokens are read.
	o.Open = func(ctx context.Context) (*interlock.Client, func() error, error) {
		e, err := a.open(ctx, nil)
		if err != nil {
			return nil, nil, err
		}
		// close ends the client too, so the locks of runs that are under way end with the server.
		return e.client, e.close, nil
	}
	o.Ready = func(address net.Addr) error { return a.sayAddress(&o.Server, "states", address) }
	return wrongFlag(webpage.ServeStates(ctx, o))
}

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
