// Mutexes over HTTP, served by package lockapi. serve.go listens and answers.

package serve

import (
	"context"

	"github.com/interlock-go/interlock/cmd/interlock/internal/lockapi"
	"github.com/interlock-go/interlock/cmd/interlock/internal/webpage"
)

// serveLocks looks at all flags before it opens the engine. When it ends it leaves all leases held until their
// deadlines.
func serveLocks(ctx context.Context, o *webpage.Locks) error {
	h, err := listen(ctx, &o.Server)
	if err != nil {
		return err
	}
	defer h.listener.Close()
	locks, closes, err := o.Open(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = closes() }()
	server, err := lockapi.New(locks, &lockapi.Options{
		Tokens: h.tokens, Hosts: o.Hosts, Timeout: o.Timeout, MaxLeases: o.MaxLeases,
	})
	if err != nil {
		return flagError("--token-file: %v", err)
	}
	defer server.Close()
	return h.answer(ctx, server, server.Close)
}
