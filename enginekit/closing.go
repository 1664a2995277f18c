// Closing what may hang. Engines call it where their open fails, before they return an [OpenError], and where they
// close clients whose servers may have stopped answering.

package enginekit

import "context"

// CloseWithin calls closing, and returns when that returns or ctx ends, whichever is first. Closing the connections to
// a hanging server takes a while, and a caller whose time is over must not wait for it.
func CloseWithin(ctx context.Context, closing func() error) {
	closed := make(chan struct{})
	go func() { // ends with closing
		defer close(closed)
		_ = closing()
	}()
	select {
	case <-closed:
	case <-ctx.Done():
	}
}
