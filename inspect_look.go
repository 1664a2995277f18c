package interlock

import (
	"context"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/core"
	"github.com/interlock-go/interlock/internal/shell"
)

// One lock, as the engine sees it and as this client knows it better.

// Look tells who holds one lock and who waits for it, as the engine sees them. For a lock that nobody holds or waits
// for it returns kind and name and nothing else; that is no error. A kind that the engine does not know is
// ErrUnsupported. The engine knows as little as with [Client.List]. But for a lock that has passed on inside this
// client Look knows the holder and its label. It costs one round trip on nearly every engine, however many locks there
// are.
func (c *Client) Look(ctx context.Context, kind Kind, name string) (LockInfo, error) {
	s := c.in()
	key := driver.Key{Kind: kind, Name: name}
	none := LockInfo{Kind: kind, Name: name}
	if err := shell.CheckCall(s.CheckMade(), ctx); err != nil {
		return none, err
	}
	if err := shell.ValidateName("name of the lock", name); err != nil {
		return none, err
	}
	if err := s.CheckOpen(); err != nil {
		return none, err
	}
	if reason, lacks := s.Machine.Traits.LackingKind(kind); lacks {
		return none, shell.Wrap("look at", key, core.Unsupported(s.Machine.Traits, reason))
	}
	info := none
	err := s.Asking(ctx, func(ctx context.Context) (err error) {
		info, err = driver.Look(ctx, s.Driver, key)
		return err
	})
	if err == nil {
		s.Present(key, &info)
	}
	return info, shell.Wrap("look at", key, err)
}
