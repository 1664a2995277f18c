package play

import (
	"context"
	"database/sql"
	"errors"
	"strings"

	"github.com/interlock-go/interlock/internal/servers"
	"github.com/interlock-go/interlock/lab/internal/story"
	"github.com/interlock-go/interlock/locktx"
)

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

// consumer is a process's work on the orders of a sale, which it does while it holds the lock.
type consumer struct {
	queue *servers.RedisConn
	taken []string // and not acknowledged
}

// batch is how many orders are booked in one transaction at most.
const batch = 32

// consume carries out an order about orders.
func (s *server) consume(ctx context.Context, o *order) *report {
	var err error
	r := &report{OK: true}
	c := &s.consumer
	switch o.Do {
	case "queue":
		c.queue, err = servers.DialRedis(ctx, o.URL, nil)
	case "take":
		err = c.take(ctx, 1)
		r.Request = strings.Join(c.taken, " ")
	case "book":
		r.N, err = s.book(ctx, o.Name)
	case "acknowledge":
		err = c.acknowledge(ctx)
	case "drain":
		r.N, err = s.drain(ctx, o)
	}
	if err != nil {
		return said(err)
	}
	return r
}

// take takes up to n orders, and waits for the first.
func (c *consumer) take(ctx context.Context, n int) error {
	args := []string{"BLMOVE", "orders", "taken", "RIGHT", "LEFT", "0"}
	for len(c.taken) < n {
		reply, err := c.queue.Do(ctx, args...)
		if err != nil || reply == nil {
			return err
		}
		request, _ := reply.(string)
		c.taken = append(c.taken, request)
		args = []string{"LMOVE", "orders", "taken", "RIGHT", "LEFT"}
	}
	return nil
}

func (c *consumer) acknowledge(ctx context.Context) error {
	for _, request := range c.taken {
		if _, err := c.queue.Do(ctx, "LREM", "taken", "1", request); err != nil {
			return err
		}
	}
	c.taken = nil
	return nil
}

// book writes the orders down that were taken, and takes pieces for those that are new, in one transaction under the
// lock. It returns how many are new.
func (s *server) book(ctx context.Context, lock string) (fresh int64, err error) {
	m := s.locks.Mutex(lock, nil) // which the process holds: this is a re-entry
	opts := &locktx.Options{Guard: saleGuard}
	err = locktx.Run(s.lease.Context(ctx), s.db.db, m, opts, func(ctx context.Context, tx *sql.Tx) error {
		var values []any
		for _, request := range s.consumer.taken {
			values = append(values, request)
		}
		marks := strings.TrimSuffix(strings.Repeat("(?),", len(values)), ",")
		fresh, err = rows(tx.ExecContext(ctx, "INSERT IGNORE INTO orders VALUES "+marks, values...))
		if err != nil || fresh == 0 {
			return err
		}
		n, err := rows(tx.ExecContext(ctx,
			"UPDATE goods SET number = number - ? WHERE id = 1 AND number >= ?", fresh, fresh))
		if err == nil && n == 0 {
			err = errors.New("more are ordered than there are")
		}
		return err
	})
	return fresh, err
}

func rows(result sql.Result, err error) (int64, error) {
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

// drain books so many orders, and returns in how many transactions.
func (s *server) drain(ctx context.Context, o *order) (transactions int64, err error) {
	for left := int64(o.N); left > 0; transactions++ {
		if err := s.consumer.take(ctx, batch); err != nil {
			return 0, err
		}
		n, err := s.book(ctx, o.Name)
		if err != nil {
			return 0, err
		}
		if err := s.consumer.acknowledge(ctx); err != nil {
			return 0, err
		}
		left -= n
	}
	return transactions, nil
}
