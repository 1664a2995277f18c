package broken

import (
	"context"
	"slices"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/drivertest"
)

// Several locks in one step, and the defects of engines that take them one after the other.

// The defects of several locks at once.
var (
	TakesOneByOne    = Defect{"several locks are taken one after the other, and given back", drivertest.Bundling}
	RefusedKeepsSome = Defect{"who is refused one of several locks keeps those before it", drivertest.Bundling}
	AllAgainTakes    = Defect{"several requests asked again take what has been released", drivertest.Bundling}
	UndoOfOneIsOne   = Defect{
		"of several requests that come late those are granted that were not undone", drivertest.Bundling,
	}
)

func bundles() []Defect {
	return []Defect{TakesOneByOne, RefusedKeepsSome, AllAgainTakes, UndoOfOneIsOne}
}

var _ driver.MultiAcquirer = (*Driver)(nil)

// AcquireAll takes all of the locks, or none.
func (d *Driver) AcquireAll(ctx context.Context, rs []*driver.Request) ([]driver.Grant, error) {
	if err := d.reach(ctx); err != nil {
		return nil, err
	}
	if !d.areSeveral(rs) {
		return nil, driver.ErrUnsupported
	}
	if d.s.defect == TakesOneByOne {
		return d.oneByOne(rs)
	}
	d.s.mu.Lock()
	defer d.s.mu.Unlock()
	return d.all(rs)
}

func (d *Driver) areSeveral(rs []*driver.Request) bool {
	for i, r := range rs {
		again := func(other *driver.Request) bool { return other.Key == r.Key || other.ID == r.ID }
		if !slices.Contains(d.Traits().Kinds, r.Kind) || slices.ContainsFunc(rs[:i], again) {
			return false
		}
	}
	return len(rs) > 0
}

// oneByOne is TakesOneByOne: another client may come in between, and the locks before the one that is held are seen as
// taken for a moment.
func (d *Driver) oneByOne(rs []*driver.Request) (gs []driver.Grant, err error) {
	s := d.s
	for i := range rs {
		s.mu.Lock()
		one, refused := d.all(rs[i : i+1])
		if refused != nil {
			for _, r := range rs[:i] {
				l := s.lock(r.Key)
				s.end(l, find(l.holders, r.ID))
			}
			s.mu.Unlock()
			return nil, refused
		}
		s.mu.Unlock()
		gs = append(gs, one...)
		time.Sleep(time.Millisecond)
	}
	return gs, nil
}

// all is the step of AcquireAll. The caller holds Store.mu.
func (d *Driver) all(rs []*driver.Request) ([]driver.Grant, error) {
	s := d.s
	over, held := 0, 0
	for _, r := range rs {
		l := s.lock(r.Key)
		s.evict(l)
		if s.gone[r.ID] || s.undone[r.ID] {
			over++
		}
		if find(l.holders, r.ID) != nil {
			held++
		}
	}
	switch {
	case over > 0 && s.defect == AllAgainTakes && held > 0:
	case over > 0 && s.defect == UndoOfOneIsOne && over < len(rs) && held == 0:
	case over > 0 || held > 0 && held < len(rs):
		return nil, &driver.LostError{Kind: rs[0].Kind, Name: rs[0].Name, Reason: driver.LostExpired}
	}
	var gs []driver.Grant
	for i, r := range rs {
		l := s.lock(r.Key)
		if find(l.holders, r.ID) == nil && len(l.holders)+len(l.waiters) > 0 {
			s.recall(l, &driver.Request{Try: true})
			if s.defect == RefusedKeepsSome {
				d.letIn(rs[:i])
			}
			return nil, s.held(l, r.Key)
		}
	}
	d.letIn(rs)
	for _, r := range rs {
		gs = append(gs, find(s.lock(r.Key).holders, r.ID).grant)
	}
	return gs, nil
}

// letIn makes holders of the requests that are not holders yet.
func (d *Driver) letIn(rs []*driver.Request) {
	for _, r := range rs {
		l := d.s.lock(r.Key)
		if find(l.holders, r.ID) == nil {
			l.limit = r.Limit
			d.s.admit(l, &entry{r: *r, client: d, since: time.Now(), by: bundle, granted: make(chan struct{})})
		}
	}
}
