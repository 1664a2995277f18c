package driver

import "context"

// Converter is implemented by engines with locks of [KindRWMutex] on which a holder can take another mode beside the
// one that it has. It does not give that up. That is how a read becomes a write and a write a read with nobody in
// between. Without it the portable layer refuses upgradeable reads, upgrades and downgrades.
type Converter interface {
	// Convert is Acquire on behalf of the owner, named or not, of the hold with the ID beside. Both holds then live on
	// their own, each renewed and released by its own ID and in any order. The lock belongs to the owner for as long as
	// either lives, in the strongest mode of what is left. What r.Mode means depends on what the owner has:
	//
	//   - Exclusive beside Upgradeable is an upgrade. It goes to the front of the queue, behind other upgrades only,
	//     and keeps new readers out while it waits. It is granted when nobody but the holder is inside, with a new
	//     token and nonce.
	//   - Exclusive beside nothing but Shared, and Upgradeable beside Shared while another has the upgradeable read,
	//     would wait for the holder itself. They are refused with [ErrDeadlock], at once, also a Try.
	//   - Everything else is re-entry: granted at once, whoever waits, with the token and nonce that the lock has.
	//
	// If there is no such hold, or it ends while r waits, r is never granted, because somebody else may have been
	// inside meanwhile. It is refused with an error matching [ErrLost]; a *LostError says why. Everything else is as
	// for Acquire of r. The same ID asked again gets the same grant, and Waiting and Lost are called. Release with Undo
	// takes away whatever r has left, and leaves the other hold alone. Only requests of the lock of that hold are
	// converted; those of kinds other than [KindRWMutex] are refused with ErrUnsupported.
	Convert(ctx context.Context, beside string, r *Request) (Grant, error)
}
