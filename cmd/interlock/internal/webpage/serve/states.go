// States of Terraform and OpenTofu, served by package terraformlock. serve.go listens and answers.

package serve

import (
	"context"
	"path/filepath"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/adapters/terraformlock"
	"github.com/interlock-go/interlock/cmd/interlock/internal/webpage"
	"github.com/interlock-go/interlock/filelock"
)

// serveStates looks at all flags before it opens the engine. When it ends it gives the locks of all runs back. Beside
// the engine it opens a file engine in the folder, whose locks are held while a state is written and end with this
// process.
func serveStates(ctx context.Context, o *webpage.States) error {
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
	engine, err := filelock.New(filepath.Join(o.Folder, ".gates"), nil)
	if err != nil {
		return flagError("--dir: %v", err)
	}
	defer engine.Close()
	files, err := interlock.New(engine, nil)
	if err != nil {
		return err
	}
	defer files.Close()
	states, err := terraformlock.New(locks, files, o.Folder, &terraformlock.Options{
		Tokens: h.tokens, Hosts: o.Hosts, MaxHold: o.MaxHold, Logger: o.Logger,
	})
	if err != nil {
		return flagError("--dir: %v", err)
	}
	// answer calls end before it waits for requests under way. It is deferred for answer's other returns; a second call
	// finds no locks.
	end := func() {
		bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), webpage.ClosingTime)
		defer cancel()
		if err := states.Close(bounded); err != nil {
			o.Logger.Warn("interlock: locks were not given back, and end with their leases", "err", err)
		}
	}
	defer end()
	return h.answer(ctx, states, end)
}
