// Adopt, the taking over of another client's hold (docs/rationale.md, Adoption): an attempt of acquire.go with another
// script and no queue.

package redislock

import (
	"context"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/redislock/internal/word"
)

var _ driver.Adopter = (*Driver)(nil)

// Adopt moves a hold of another client to r, in one round trip, and tells that client by a push; see [driver.Adopter].
// It never waits for the lock: it asks as a try does. The hold is known by its ID alone, so a hold that has ended, or
// was adopted before, is an error that matches driver.ErrLost.
func (d *Driver) Adopt(ctx context.Context, from string, r *driver.Request) (driver.Grant, error) {
	switch err := check(r); {
	case err != nil:
		return driver.Grant{}, err
	case !word.Is(from):
		return driver.Grant{}, errGone(r.Key) // no hold has this ID
	case ctx.Err() != nil:
		return driver.Grant{}, ctx.Err()
	}
	e, err := d.enter(r)
	if err != nil {
		return driver.Grant{}, err
	}
	a := d.newAttempt(r, e, "")
	a.adopts = from
	a.setTail('t')
	g, err := a.run(ctx, a.askTwice(ctx, nil))
	return a.end(ctx, g, err)
}

// adopting makes the call one that adopts. It has fixed keys and arguments, because nothing else can come with it.
func (a *attempt) adopting(call *Call) {
	call.Script = adoptScript
	call.Keys = []string{a.keys[0], a.keys[1], a.keys[2], a.d.names.tomb(a.slot, a.adopts)}
	call.Args = []string{a.args[0], a.args[1], a.args[2], a.args[3], a.adopts}
}
