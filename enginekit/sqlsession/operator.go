// Ask, for what an engine asks beside locks: lists, checks, breaks.

package sqlsession

import "context"

// Ask runs f on a shared connection, in its goroutine, and returns its answer. It blocks until then. If ctx ends first
// it returns ctx.Err(), and f may still run. If the connection has ended before, f does not run, and the error matches
// [ErrLost]; after Close it is driver.ErrClosed.
func Ask[T any](ctx context.Context, d *Core, f func(c *Conn) (T, error)) (found T, err error) {
	type answer struct {
		found T
		err   error
	}
	if err := ctx.Err(); err != nil {
		return found, err
	}
	word := make(chan answer, 1) // buffered, so that f's goroutine is not kept when ctx has ended
	d.OnShared(Job{
		Run: func(c *Conn) {
			found, err := f(c)
			word <- answer{found, err}
		},
		Dead: func(err error) { word <- answer{err: err} },
	})
	select {
	case a := <-word:
		return a.found, a.err
	case <-ctx.Done():
		return found, ctx.Err()
	}
}
