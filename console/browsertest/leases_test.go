package browsertest

import (
	"testing"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/console"
	"github.com/interlock-go/interlock/driver"
)

// A client that has crashed renews nothing and gives nothing back.
func TestLease_OfAClientThatHasCrashed_IsNearItsEndAndThenExpired(t *testing.T) {
	s := newSite(t, console.Options{})
	p := newTab(t)
	p.open(s.url(""))
	hold(t.Context(), t, s.newClient("shop-1"), "renewed", "")
	plays := &stage{T: t, store: s.store}
	r := plays.request(driver.KindMutex, "crashed", "", "shop-2")
	r.Lease = 8 * time.Second
	plays.hold(r)
	p.shows("tr[data-id='mutex/crashed'] .lease[data-state=good]", "s")
	p.click("#only-late")
	p.lacks("td.c-name", "renewed")
	p.shows("tr[data-id='mutex/crashed'] .lease[data-state=late]", "late")
	p.shows("#empty", "No lock matches") // once it has ended
	p.click(".tabs a[data-view=events]")
	p.shows(".event[data-event=ended]", "crashed")
	p.click("button[data-only=serious]")
	p.lacks(".event", "renewed")
	p.shows(".event", "crashed")
}

func TestStates_OfLocksThatNobodyHolds(t *testing.T) {
	s := newSite(t, console.Options{})
	c := s.newClient("shop-1")
	for name, opts := range map[string]*interlock.LockOptions{
		"resting": {MinHold: time.Hour}, "retained": {Retain: time.Hour},
	} {
		l, err := c.Mutex(name, opts).Lock(t.Context())
		s.must(err)
		release(t, l)
	}
	p := newTab(t)
	p.open(s.url(""))
	p.shows("tr[data-id='mutex/resting'] .mark-resting", "resting")
	p.shows("tr[data-id='mutex/retained'] .mark-retained", "retained")
	p.shows(".t-held", "0")
	p.shows(".t-resting", "1")
	p.shows(".t-retained", "1")
	p.click("#only-retained")
	p.lacks("td.c-name", "resting")
	p.click("tr[data-id='mutex/retained']")
	p.shows("#detail .sum", "Its client keeps it until another client wants it.")
}
