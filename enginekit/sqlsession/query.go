package sqlsession

import "context"

// Ask has f run on a shared connection, in its goroutine, and waits for it as long as ctx lasts.
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
