package run

import (
	"context"
	"fmt"
	"time"

	"github.com/interlock-go/interlock/enginekit"
)

// longHold is for how many leases a long hold lasts, and far which part of a lease each way to the
// server and back takes then.
const (
	longHold = 20
	far      = 0.15
)

func (r *run) long() time.Duration {
	if !r.Long {
		return 0
	}
	return longHold * r.lease
}

// goAway puts the server far away if holds must be long: when all have begun, because to
// connect takes many round trips.
func (r *run) goAway(ctx context.Context) error {
	if !r.Long {
		return nil
	}
	for _, name := range r.names {
		for end := time.Now().Add(30 * time.Second); ; enginekit.Pause(ctx, 20*time.Millisecond) {
			if _, ok := r.register.Latest(name); ok {
				break
			}
			if time.Now().After(end) || ctx.Err() != nil {
				return fmt.Errorf("%s was not taken within 30 s; see the files *.stderr of the run", name)
			}
		}
	}
	// Each hold is renewed once before that: a server that does not have the script yet is asked twice, which would
	// take six tenths of a lease and leave hardly anything.
	enginekit.Pause(ctx, r.lease/2)
	for _, p := range r.crew {
		if len(p.links) == 0 {
			return fmt.Errorf("there is no way to %s on which anything could be slow", r.Target.Name)
		}
		p.links.delay(time.Duration(far * float64(r.lease)))
	}
	return nil
}
