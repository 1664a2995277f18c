// Package closing takes leave of what could not be opened. It is a part of engines.
package closing

import "context"

// Within calls leave, and returns when that has ended or ctx has: to a server that hangs a farewell takes a while, which nobody
// waits for who has given up. leave must be bounded, because it goes on in the background. Its error does not matter beside why
// nothing was opened.
func Within(ctx context.Context, leave func() error) {
	left := make(chan struct{})
	go func() { // ends with leave
		defer close(left)
		_ = leave()
	}()
	select {
	case <-left:
	case <-ctx.Done():
	}
}
