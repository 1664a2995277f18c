package run

import (
	"context"
	"slices"
	"time"

	"github.com/interlock-go/interlock/internal/servers"
	"github.com/interlock-go/interlock/torture/target"
)

// untold has a fault done to the server and, if the end of its connections would tell every holder at once, one client
// hear nothing of it: no byte and no end of a connection passes to it, or from it, for a lease from just before the
// fault. As an engine has it, the session has ended then, and with it the hold; as that client has it, both last until
// their own ends. The fault itself is shorter than that, so that others can have the lock by then.
func (n *nemesis) untold(
	ctx context.Context, fault target.Fault, lasts time.Duration, victim *process, harm func(lasts time.Duration) error,
) error {
	if len(victim.links) == 0 || !slices.Contains(n.Target.Untold, fault) {
		return harm(lasts)
	}
	dark, light := context.WithTimeout(ctx, n.lease)
	defer light()
	victim.links.each(func(p *servers.Proxy) { p.BlackHole(servers.BothWays) })
	defer victim.links.each((*servers.Proxy).Pass)
	err := harm(min(lasts, n.lease/4))
	<-dark.Done()
	return err
}
