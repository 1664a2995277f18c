package play

import "github.com/interlock-go/interlock/lab/internal/story"

// Queue has the process consume the orders of a Redis, and book them in the database at dsn.
func (c *Process) Queue(redis *Redis, dsn string) {
	c.p.Helper()
	c.Database(dsn)
	c.must(&order{Do: "queue", URL: redis.Addr()})
}

// Take takes the next order from the queue.
func (c *Process) Take() string {
	c.p.Helper()
	request := c.must(&order{Do: "take"}).Request
	c.p.step(c.name, story.Asks, story.T("takes an order from the queue  →  %s", "从队列取一个订单  →  %s", request))
	return request
}

// Book books what the process has taken, and reports whether that was news to the books.
func (c *Process) Book() bool {
	c.p.Helper()
	fresh := c.must(&order{Do: "book"}).N == 1
	answer := story.T("it is there already: nothing is changed", "已经在账上：什么都不改")
	if fresh {
		answer = story.T("committed", "已提交")
	}
	c.p.step(c.name, story.Asks, story.Join(
		story.T("locktx.Run: books the order, with its request as the key  →  ", "locktx.Run：以请求号为主键记账  →  "), answer))
	return fresh
}

// Acknowledge has the queue forget what the process has taken.
func (c *Process) Acknowledge() {
	c.p.Helper()
	c.must(&order{Do: "acknowledge"})
	c.p.step(c.name, story.Asks, story.T("acknowledges it  →  done", "确认  →  成功"))
}

// BeginDrain begins to book n orders, as they come; Drained waits for the end.
func (c *Process) BeginDrain(n int) {
	c.p.Helper()
	c.send(&order{Do: "drain", N: n})
}

// Drained returns in how many transactions that was done.
func (c *Process) Drained() int {
	c.p.Helper()
	r := c.answer()
	if !r.OK {
		c.p.Fatalf("%s: %s", c.name, r.Why)
	}
	return int(r.N)
}
