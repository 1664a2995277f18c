// The first moments of a driver: nodes that were never used get their marks. driver.go calls begin; guard.go has the
// rule.

package redlock

import (
	"context"
	"errors"
	"fmt"

	"github.com/interlock-go/interlock/enginekit"
)

// begin gives new nodes their mark. If some have it, another client may be about to give it to the others: begin waits
// for that, but no longer than askAgain.
func (d *Driver) begin(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, askAgain)
	defer cancel()
	for {
		resting, old := d.resting()
		switch {
		case old > 0: // the nodes are not new, so the others have lost their marks
			return nil
		case resting == len(d.nodes):
			return d.lookAt(ctx, true)
		case len(d.nodes)-resting >= d.quorum: // what is not connected has not voted before either
			return nil
		}
		if !enginekit.Pause(ctx, askAgain/20) { // the nodes say themselves why they do not vote
			return nil
		}
		if err := d.lookAt(ctx, false); err != nil {
			return err
		}
	}
}

// resting counts the nodes that rest, and how many of these have the mark of an earlier run.
func (d *Driver) resting() (all, old int) {
	for _, n := range d.nodes {
		if n.driver() == nil {
			continue
		}
		rested, marked := n.guard.standing()
		if rested {
			all++
		}
		if marked {
			old++
		}
	}
	return all, old
}

// lookAt asks the resting nodes once more. That a node still rests is no error.
func (d *Driver) lookAt(ctx context.Context, allNew bool) error {
	for _, n := range d.nodes {
		if n.driver() == nil {
			continue
		}
		if rested, _ := n.guard.standing(); !rested {
			continue
		}
		if err := n.guard.look(ctx, allNew); err != nil && !errors.Is(err, errRests) && ctx.Err() == nil {
			return fmt.Errorf("redlock: %s: %w", n.name, err)
		}
	}
	return nil
}
