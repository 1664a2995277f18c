package target

import (
	"context"
	"strings"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/torture/history"
)

// Abilities are what an engine can do that others cannot.
type Abilities struct {
	Shares  []history.Share // how its locks can be shared
	Ordered bool            // its waiters are served first come, first served, also those of other processes
	// Sessions says that holds are trusted while a session is.
	Sessions bool
	// Recalls says that a holder is told when another process waits.
	Recalls bool
	// Named says that an owner that was named re-enters by asking the engine.
	Named bool
}

// Ask asks the engine at url.
func Ask(ctx context.Context, url string, lease time.Duration) (*Abilities, error) {
	d, err := driver.DefaultMux.Open(ctx, url, driver.Config{Lease: lease, Client: "coordinator"})
	if err != nil {
		return nil, err
	}
	t := d.Traits()
	_, unordered := t.Lacking(driver.Order)
	_, tellsNobody := t.Lacking(driver.Recalls)
	_, nameless := t.Lacking(driver.NamedOwners)
	return &Abilities{
		Shares: sharesOf(t), Ordered: !unordered, Sessions: t.Lifetime == driver.Sessions, Recalls: !tellsNobody,
		Named: !nameless,
	}, d.Close()
}

func sharesOf(t driver.Traits) (all []history.Share) {
	for _, of := range []struct {
		kind   driver.Kind
		shares []history.Share
	}{
		{driver.KindRWMutex, []history.Share{history.Reads, history.Writes}},
		{driver.KindSemaphore, []history.Share{history.Permits}},
		{driver.KindLatch, []history.Share{history.Latch}},
		{driver.KindCond, []history.Share{history.Waits}},
	} {
		if t.Supports(of.kind) {
			all = append(all, of.shares...)
		}
	}
	if _, lacks := t.Lacking(driver.Conversion); !lacks && t.Supports(driver.KindRWMutex) {
		all = append(all, history.Upgrades)
	}
	return all
}

// Recalls reports whether the target tells a holder that another process waits, as for the workload retain. That is to
// be known before anything is started, so it cannot be asked.
func (g *Target) Recalls() bool {
	with := func(engine string) bool { return strings.HasPrefix(g.Name, engine) }
	return g.Inside || with("redis") || with("zookeeper") || with("etcd")
}

// lists reports whether the target tells who waits for a lock. This must be known before anything is
// started, so it cannot be asked.
func (g *Target) lists() bool { return g.Name != "file" && !g.Inside }
