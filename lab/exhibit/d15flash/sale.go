// Package d15flash is an exhibit, broken on purpose: a flash sale whose stock is counted in Redis, whose orders go
// through a queue, and whose books are in SQL. Nothing keeps the three together when one of them fails in between.
package d15flash

import (
	"context"

	"github.com/interlock-go/interlock/lab/exhibit"
)

// The keys: the pieces that are left, the orders that wait, and those that a consumer has taken.
const (
	Stock  = "stock"
	Orders = "orders"
	Taken  = "taken"
)

// Gate admits orders. Redis and the queue are two servers.
type Gate struct {
	Redis exhibit.Conn
	Queue exhibit.Conn
}

// BuyChecked reads, checks, decrements, and sends the order. Between the first and the last anybody may do the same.
func (g *Gate) BuyChecked(ctx context.Context, order string) (bool, error) {
	left, _, err := exhibit.Text(g.Redis.Do(ctx, "GET", Stock))
	if err != nil || left == "0" {
		return false, err
	}
	if _, err := g.Redis.Do(ctx, "DECR", Stock); err != nil {
		return false, err
	}
	return true, g.send(ctx, order)
}

// Buy decrements, checks, and sends the order. What is below zero then stays there.
func (g *Gate) Buy(ctx context.Context, order string) (bool, error) {
	left, err := exhibit.Int(g.Redis.Do(ctx, "DECR", Stock))
	if err != nil || left < 0 {
		return false, err
	}
	return true, g.send(ctx, order)
}

// BuyOrGiveBack is Buy that gives the piece back if the order could not be sent.
func (g *Gate) BuyOrGiveBack(ctx context.Context, order string) (bool, error) {
	ok, err := g.Buy(ctx, order)
	if ok && err != nil {
		return false, g.GiveBack(ctx)
	}
	return ok, err
}

// GiveBack puts a piece back, as of an order that was cancelled.
func (g *Gate) GiveBack(ctx context.Context) error {
	_, err := g.Redis.Do(ctx, "INCR", Stock)
	return err
}

func (g *Gate) send(ctx context.Context, order string) error {
	_, err := g.Queue.Do(ctx, "LPUSH", Orders, order)
	return err
}

// Consumer books orders from the queue. An order that it has not acknowledged is delivered again.
type Consumer struct {
	Queue exhibit.Conn
	DB    exhibit.SQL // one connection
}

// Handle takes one order, books it, and acknowledges it. It reports whether the database had a piece for it.
func (c *Consumer) Handle(ctx context.Context) (bool, error) {
	order, _, err := exhibit.Text(c.Queue.Do(ctx, "LMOVE", Orders, Taken, "RIGHT", "LEFT"))
	if err != nil {
		return false, err
	}
	booked, err := Book(ctx, c.DB, order)
	if err != nil {
		return false, err
	}
	_, err = c.Queue.Do(ctx, "LREM", Taken, "1", order)
	return booked, err
}

// Book takes a piece and writes the order down, in one transaction. It does not look whether the order is there
// already. A gate that calls it while the customer waits keeps the row of the stock locked from the first statement to
// the commit.
func Book(ctx context.Context, db exhibit.SQL, order string) (bool, error) {
	if _, err := db.Exec(ctx, "START TRANSACTION"); err != nil {
		return false, err
	}
	rows, err := db.Exec(ctx, "UPDATE goods SET number = number - 1 WHERE id = 1 AND number >= 1")
	if err != nil {
		return false, err
	}
	if rows == 0 {
		_, err := db.Exec(ctx, "ROLLBACK")
		return false, err
	}
	if _, err := db.Exec(ctx, "INSERT INTO orders VALUES (?)", order); err != nil {
		return false, err
	}
	_, err = db.Exec(ctx, "COMMIT")
	return err == nil, err
}
