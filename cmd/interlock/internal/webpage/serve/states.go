// States of Terraform and OpenTofu, served by package terraformlock. serve.go listens and answers.

package serve

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"path/filepath"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/adapters/terraformlock"
	"github.com/interlock-go/interlock/cmd/interlock/internal/webpage"
	"github.com/interlock-go/interlock/console"
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
	states, err := terraformlock.New(locks, files, o.Folder, &terraformlock.Options{MaxHold: o.MaxHold})
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
	return h.answer(ctx, known(h.tokens, states), end)
}

// known lets those in who know a token: as the password, with its name as the user. Without tokens everybody is let in.
func known(tokens []console.Token, to http.Handler) http.Handler {
	if len(tokens) == 0 {
		return to
	}
	right := map[string][sha256.Size]byte{}
	for _, t := range tokens {
		right[t.Name] = sha256.Sum256([]byte(t.Secret))
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name, secret, _ := r.BasicAuth()
		want, is := right[name]
		given := sha256.Sum256([]byte(secret)) // of one length, so that comparing them tells nothing
		if subtle.ConstantTimeCompare(want[:], given[:]) != 1 || !is {
			w.Header().Set("WWW-Authenticate", `Basic realm="interlock"`)
			http.Error(w, "set TF_HTTP_USERNAME and TF_HTTP_PASSWORD to a line of the token file",
				http.StatusUnauthorized)
			return
		}
		to.ServeHTTP(w, r)
	})
}
