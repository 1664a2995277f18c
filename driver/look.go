package driver

import (
	"context"
	"fmt"
)

// Looker is implemented by engines that can tell about one lock without going through all of them.
type Looker interface {
	// Look tells who holds key and who waits for it, as Locks would. For a lock that nobody holds or waits for it
	// returns kind and name and nothing else; that is no error. A kind that the engine does not know is refused with
	// ErrUnsupported. It costs one round trip where the engine keeps a lock in one place, and never depends on how many
	// other locks there are.
	Look(ctx context.Context, key Key) (LockInfo, error)
}

// Look asks d about one lock. It calls Look if d is a [Looker], and otherwise walks all locks whose names begin with
// the same text. An engine that can do neither yields ErrUnsupported.
func Look(ctx context.Context, d Driver, key Key) (LockInfo, error) {
	if looker, can := d.(Looker); can {
		return looker.Look(ctx, key)
	}
	none := LockInfo{Kind: key.Kind, Name: key.Name}
	if !d.Traits().Supports(key.Kind) {
		return none, fmt.Errorf("locks of kind %q: %w", key.Kind, ErrUnsupported)
	}
	inspector, can := d.(Inspector)
	if !can {
		reason, _ := d.Traits().Lacking(Holders)
		return none, fmt.Errorf("%w (%s)", ErrUnsupported, reason)
	}
	for info, err := range inspector.Locks(ctx, key.Name) {
		if err != nil {
			return none, err
		}
		if info.Kind == key.Kind && info.Name == key.Name {
			return info, nil
		}
	}
	return none, nil
}
