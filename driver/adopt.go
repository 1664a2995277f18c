package driver

import "context"

// Adopter is implemented by engines on which a hold can go on to another client. One client gives it away by a
// [Handle], and another adopts it. Only engines with [Leases] can have it: elsewhere a hold is a part of its client's
// session or process.
type Adopter interface {
	// Adopt gives the hold with the ID from to r, in one step, so that nobody gets in between. From then on the hold
	// goes by r.ID, belongs to r's owner and client, and lasts for r.Lease from now, or longer if it already did. Its
	// mode, its permits and its LockDelay stay. It gets a new token and nonce, as a grant does: a fence that has seen
	// them refuses whoever had the hold before.
	//
	// The ID from is over. Renewals and releases of it match [ErrLost] and change nothing, with [LostAdopted] for as
	// long as the engine remembers it. So does a second adoption. The client that had the hold is told by its
	// Request.Lost.
	//
	// If there is no such hold the error matches ErrLost. A hold of a named owner, and one beside which its owner has
	// further holds, is refused with [ErrNested]. The same r.ID asked again gets the same grant. Everything else is as
	// for a Try of Acquire, also what an error means. Release with Undo of r.ID takes away whatever r has left, which
	// ends the hold.
	Adopt(ctx context.Context, from string, r *Request) (Grant, error)
}
