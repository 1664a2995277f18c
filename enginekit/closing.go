// Closing what could not be opened. Engines call it where their open fails, before they return an [OpenError].

package enginekit

import "context"

// CloseWithin calls closing, and returns when that returns or ctx ends, whichever is first. It is for an engine that
// could not be opened: closing the connections to a hanging server takes a while, and a caller whose time is over must
// not wait for it.
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
