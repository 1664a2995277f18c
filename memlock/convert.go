package memlock

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// Another mode beside a hold: the request is judged as one of the same owner, whether it has a name or not (lock.go).

// Convert takes another mode of a read/write lock beside a hold; see [driver.Converter]. It waits as Acquire does.
func (d *Driver) Convert(ctx context.Context, beside string, r *driver.Request) (driver.Grant, error) {
	own := d.own(r)
	return d.enter(ctx, own, func(now time.Time, q *state) (*record, error) {
		if beside == "" {
			return nil, errGone // no hold has this ID
		}
		return q.enter(now, demand{Request: own, beside: beside})
	})
}

// demand is a request, and the ID of the hold beside which it is made; the ID is empty if it stands on its own.
type demand struct {
	*driver.Request
	beside string
}

// demand returns what rec was asked as, for a new judgement.
func (rec *record) demand() demand { return demand{Request: &rec.req, beside: rec.beside} }

// owns reports whether g belongs to the owner of r: by the hold beside which r is made, or by name. The hold without
// does not count.
func (r demand) owns(g *group, without *record) bool {
	// Only the hold that it stands beside counts, and not what else an owner of that name has.
	if r.beside != "" {
		return g.has(r.beside)
	}
	return r.Named && g.belongs(r.Owner, without)
}

// takesPermits reports whether r is for permits of a semaphore.
func (r demand) takesPermits() bool { return r.Mode == driver.Shared && r.Limit > 0 }

// has reports whether the hold with this ID is one of g's, and live; see belongs.
func (g *group) has(id string) bool {
	return slices.ContainsFunc(g.holds, func(h *record) bool { return h.ref.id == id && h.phase == held })
}

// checkBeside refuses what cannot be beside a hold: a lock without modes, or a hold that is over.
func (s *state) checkBeside(r demand) error {
	if r.Kind != driver.KindRWMutex {
		return fmt.Errorf("another mode of a lock of kind %q: %w", r.Kind, driver.ErrUnsupported)
	}
	_, err := s.live(ref{r.Key, r.beside})
	return err
}

// howEnded says how the hold ended beside which r was asked for.
func (s *state) howEnded(r demand) error {
	if _, err := s.live(ref{r.Key, r.beside}); err != nil {
		return err
	}
	return errGone
}
