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
	p.Shows("tr[data-id='mutex/crashed'] .lease[data-state=good]", "s")
	p.Click("#only-late")
	p.Lacks("td.c-name", "renewed")
	p.Shows("tr[data-id='mutex/crashed'] .lease[data-state=late]", "late")
	p.Shows("#empty", "No lock matches") // once it has ended
	p.Click(".tabs a[data-view=events]")
	p.Shows(".event[data-event=ended]", "crashed")
	p.Click("button[data-only=serious]")
	p.Lacks(".event", "renewed")
	p.Shows(".event", "crashed")
}

func TestStates_OfLocksThatNobodyHolds(t *testing.T) {
	s := newSite(t, console.Options{})
	c := s.newClient("shop-1")
	for name, opts := range map[string]*interlock.LockOptions{
		"cooldown": {MinHold: time.Hour}, "retained": {Retain: time.Hour},
	} {
		l, err := c.Mutex(name, opts).Lock(t.Context())
		s.must(err)
		release(t, l)
	}
	p := newTab(t)
	p.open(s.url(""))
	p.Shows("tr[data-id='mutex/cooldown'] .mark-cooldown", "cooldown")
	p.Shows("tr[data-id='mutex/retained'] .mark-retained", "retained")
	p.Shows(".t-held", "0")
	p.Shows(".t-cooldown", "1")
	p.Shows(".t-retained", "1")
	p.Click("#only-retained")
	p.Lacks("td.c-name", "cooldown")
	p.Click("tr[data-id='mutex/retained']")
	p.Shows("#detail .sum", "Its client keeps it until another client wants it.")
}
