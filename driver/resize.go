package driver

import "context"

// Resizer is implemented by engines that can change the limit of a semaphore while it is in use.
type Resizer interface {
	// Resize makes limit, at least 1, the limit of the semaphore key in one step. The permits that are held stay, also
	// when there are more of them than limit: then nothing is granted until enough have come back. Waiters keep their
	// places, and one whose turn has come is let in at once. From then on a request with another limit gets
	// [ErrConflict], unless it waits or holds already.
	//
	// If anybody waits for more permits than limit, Resize changes nothing and returns an error that matches
	// ErrConflict: that request could never be granted. If the semaphore is not in use, there is no limit to change,
	// and Resize returns nil. The same call repeated changes nothing more, so it is repeated after an error that leaves
	// the outcome open.
	Resize(ctx context.Context, key Key, limit int) error
}
