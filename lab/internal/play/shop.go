package play

import "github.com/interlock-go/interlock/lab/internal/story"

// Mutex takes the process's own sync.Mutex, which nobody else in it has.
func (c *Process) Mutex() {
	c.p.Helper()
	c.must(&order{Do: "mutex"})
	c.p.set(c.name, story.Holds)
	c.p.step(c.name, story.Asks, story.T("mutex.Lock  →  got it", "mutex.Lock  →  拿到了"))
}

// TryMutex is another goroutine of the process that tries to take it.
func (c *Process) TryMutex() bool {
	c.p.Helper()
	ok := c.ask(&order{Do: "mutex"}).OK
	c.p.step(c.name, story.Asks,
		story.T("mutex.TryLock by another goroutine  →  %v", "另一个 goroutine 的 mutex.TryLock  →  %v", ok))
	return ok
}

// Unmutex releases it.
func (c *Process) Unmutex() {
	c.p.Helper()
	c.must(&order{Do: "unmutex"})
	c.p.set(c.name, story.Idle)
	c.Says("mutex.Unlock", "mutex.Unlock")
}

// Database opens the database with the table of goods.
func (c *Process) Database(dsn string) {
	c.p.Helper()
	c.must(&order{Do: "database", URL: c.p.tapDSN(c.name, dsn)})
}

// Read returns the stock.
func (c *Process) Read() int {
	c.p.Helper()
	n := int(c.must(&order{Do: "read"}).N)
	c.p.said(c.name, story.Same("SELECT number  →  "+Answer(int64(n), nil)), toDatabase)
	return n
}

// Write sets the stock.
func (c *Process) Write(n int) {
	c.p.Helper()
	c.must(&order{Do: "write", N: n})
	c.p.said(c.name, story.Same("UPDATE goods SET number = "+Answer(int64(n), nil)), toDatabase)
}
