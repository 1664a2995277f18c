// The first moments of a driver: nodes that were never used get their marks. driver.go calls begin; guard.go has the
// rule.

package redlock

import (
	"context"
	"errors"
	"fmt"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/enginekit"
)

// begin gives new nodes their marks. If some have theirs, another client may be about to give it to the others: begin
// waits for that, but no longer than askAgain. It fails if a node is of another set than that which the client names.
func (d *Driver) begin(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, askAgain)
	defer cancel()
	for {
		_, silent, old, err := d.votes()
		if err != nil || silent == 0 || old > 0 { // beside an old mark the others are not new, but have lost theirs
			return err
		}
		if err := d.lookAt(ctx); err != nil {
			return err
		}
		// New nodes vote when all have answered, so those that are not connected yet are waited for too.
		voting, _, _, err := d.votes()
		if err != nil || voting >= d.quorum {
			return err
		}
		if !enginekit.Pause(ctx, askAgain/20) { // the nodes say themselves why they do not vote
			return nil
		}
	}
}

// votes counts the connected nodes that vote and those that do not, and how many have the mark of an earlier run. It
// returns an error if a node is of another set: to go on without it would hide that programs do not exclude each other.
func (d *Driver) votes() (voting, silent, old int, err error) {
	for _, n := range d.nodes {
		if n.driver() == nil {
			continue
		}
		marked, why := n.guard.standing()
		var other *setError
		if errors.As(why, &other) && other.conflict {
			return 0, 0, 0, fmt.Errorf("redlock: %s: %w: %w", n.name, driver.ErrConflict, why)
		}
		if why != nil {
			silent++
		} else {
			voting++
		}
		if marked {
			old++
		}
	}
	return voting, silent, old, nil
}

// lookAt asks once more the nodes that do not vote. That one still does not is no error.
func (d *Driver) lookAt(ctx context.Context) error {
	for _, n := range d.nodes {
		if n.driver() == nil {
			continue
		}
		if _, why := n.guard.standing(); why == nil {
			continue
		}
		if err := n.guard.look(ctx); err != nil && !abstains(err) && ctx.Err() == nil {
			return fmt.Errorf("redlock: %s: %w", n.name, err)
		}
	}
	return nil
}
