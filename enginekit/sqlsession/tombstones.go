package sqlsession

import (
	"time"

	"github.com/interlock-go/interlock/driver"
)

// epitaph says how a request has ended. The zero value says that it has not.
type epitaph struct {
	released bool
	undone   bool
	until    time.Time // of an undone one: how long its copies are refused

	reason driver.LostReason // of a hold that was lost
	cause  error
	token  uint64
}

func (p epitaph) is() bool { return p.released || p.undone || p.reason != "" }

// remember notes how a request has ended. Between its caller and this table there is no network, so no copy of one that
// was released or lost is under way for long. The caller holds Core.mu.
func (d *Core) remember(id string, p epitaph) {
	if p.undone {
		d.gone.BuryUntil(id, p.until)
		return
	}
	d.gone.Bury(id, p)
}

// endOf is what a release of something that is not there says. The caller holds Core.mu.
func (d *Core) endOf(r *driver.Release) error {
	p, ended := d.gone.Epitaph(r.ID)
	if !ended || p.reason == "" {
		return gone(r.Key)
	}
	return &driver.LostError{Kind: r.Kind, Name: r.Name, Token: p.token, Reason: p.reason, Cause: p.cause}
}
