package enginekit

import "context"

// CloseWithin calls closing, and returns when that returns or ctx ends, whichever is first. It is for an engine that
// could not be opened: saying goodbye to a server that hangs takes a while, and a caller whose time is over must not
// wait for it.
//
// When ctx ends first, closing goes on in a goroutine, so it must end by itself in bounded time. Its error is dropped:
// the caller reports why the engine could not be opened.
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
