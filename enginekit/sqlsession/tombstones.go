// How requests end, and how long that is remembered. release.go writes it, entry.go refuses by it.

package sqlsession

import (
	"time"

	"github.com/interlock-go/interlock/driver"
)

// epitaph says how a request has ended. The zero value says that it has not.
type epitaph struct {
	released bool      // by a Release
	torn     bool      // by that or by the end of the session after it; no Release was told
	undone   bool      // by an undo
	until    time.Time // of an undone one: how long copies of it are refused

	reason driver.LostReason // of a hold that was lost; empty otherwise
	cause  error
	token  uint64
}

// is reports whether there is an end at all.
func (p epitaph) is() bool { return p.released || p.undone || p.reason != "" }

// remember records how a request has ended. There is no network between its caller and this table, so no copy of a
// released or lost request is under way for long. The caller holds Core.mu.
func (d *Core) remember(id string, p epitaph) {
	if p.undone {
		d.gone.BuryUntil(id, p.until)
		return
	}
	d.gone.Bury(id, p)
}

// endOf is the answer to a release of something that is not there. The caller holds Core.mu.
func (d *Core) endOf(r *driver.Release) error {
	p, ended := d.gone.Epitaph(r.ID)
	if p.torn { // the first that was told nothing asks again
		return nil
	}
	if !ended || p.reason == "" {
		return gone(r.Key)
	}
	return &driver.LostError{Kind: r.Kind, Name: r.Name, Token: p.token, Reason: p.reason, Cause: p.cause}
}
