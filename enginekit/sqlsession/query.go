package sqlsession

import "context"

// Ask runs f on a shared connection, in the goroutine of that, and returns its answer. If ctx ends first it returns
// ctx.Err(), and f may run all the same. If the connection has ended before, f does not run, and the error matches
// [ErrLost]; after Close it is driver.ErrClosed.
func Ask[T any](ctx context.Context, d *Core, f func(c *Conn) (T, error)) (found T, err error) {
	type answer struct {
		found T
		err   error
	}
	if err := ctx.Err(); err != nil {
		return found, err
	}
	word := make(chan answer, 1)
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
