package main

import (
	"context"
	"database/sql"
	"fmt"

	_ "github.com/go-sql-driver/mysql" // registers mysql with database/sql
)

// ledger is the truth: what is sold stands in the database.
type ledger struct {
	db   *sql.DB
	item string
}

// verdict is what the database says to an order.
type verdict string

const (
	booked       verdict = "booked"   // also if it was booked before
	refusedStock verdict = "no stock" // fewer are left than were ordered
	refusedLimit verdict = "limit"    // the user has too many
	voided       verdict = "voided"   // it was given up before, for good
)

// create makes the tables that are missing. The constraint is a net under everything else.
func (l *ledger) create(ctx context.Context) error {
	for _, text := range []string{
		`CREATE TABLE IF NOT EXISTS sales (item VARCHAR(64) PRIMARY KEY, initial INT NOT NULL, per_user INT NOT NULL,
			number INT NOT NULL CHECK (number >= 0)) COLLATE utf8mb4_bin`,
		`CREATE TABLE IF NOT EXISTS orders (item VARCHAR(64) NOT NULL, request VARCHAR(64) NOT NULL, user VARCHAR(64) NOT NULL,
			quantity INT NOT NULL, status VARCHAR(8) NOT NULL, at TIMESTAMP(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6),
			PRIMARY KEY (item, request), KEY by_user (item, user)) COLLATE utf8mb4_bin`,
	} {
		if _, err := l.db.ExecContext(ctx, text); err != nil {
			return err
		}
	}
	return nil
}

// load opens the sale in the database, unless it is there already.
func (l *ledger) load(ctx context.Context, s sale) error {
	_, err := l.db.ExecContext(ctx, "INSERT IGNORE INTO sales (item, initial, per_user, number) VALUES (?, ?, ?, ?)",
		l.item, s.Stock, s.Limit, s.Stock)
	return err
}

// book writes the order and takes its stock, in one transaction. Repeated, it changes nothing: the sale's request is
// the key.
// beforeCommit and the error tell nothing of the outcome: after an error of COMMIT the order may stand or not, and
// whoever repeats it will know.
func (l *ledger) book(ctx context.Context, o order, beforeCommit func() error) (v verdict, err error) {
	tx, err := l.db.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelReadCommitted})
	if err != nil {
		return "", err
	}
	defer func() {
		if err != nil || v != booked {
			// An error says that it has been rolled back, or was committed, or that the connection is gone and
			// with it the transaction.
			_ = tx.Rollback()
		}
	}()
	known, err := l.insert(ctx, tx, o, string(booked))
	if err != nil || known != "" {
		return known, err
	}
	if v, err := l.deduct(ctx, tx, o); err != nil || v != booked {
		return v, err
	}
	if err := beforeCommit(); err != nil {
		return "", err
	}
	return booked, tx.Commit()
}

// insert writes the order's row, or returns what stands there already.
func (l *ledger) insert(ctx context.Context, tx *sql.Tx, o order, status string) (known verdict, err error) {
	result, err := tx.ExecContext(ctx,
		"INSERT IGNORE INTO orders (request, item, user, quantity, status) VALUES (?, ?, ?, ?, ?)",
		o.Request, l.item, o.User, o.Quantity, status)
	if err != nil {
		return "", err
	}
	if rows, err := result.RowsAffected(); err != nil || rows == 1 {
		return "", err
	}
	err = tx.QueryRowContext(ctx,
		"SELECT status FROM orders WHERE item = ? AND request = ?", l.item, o.Request).Scan(&known)
	return known, err
}

// deduct takes the stock. It locks the sale's row, so the count of the user's orders after it cannot
// change until the commit.
func (l *ledger) deduct(ctx context.Context, tx *sql.Tx, o order) (verdict, error) {
	result, err := tx.ExecContext(ctx,
		"UPDATE sales SET number = number - ? WHERE item = ? AND number >= ?", o.Quantity, l.item, o.Quantity)
	if err != nil {
		return "", err
	}
	if rows, err := result.RowsAffected(); err != nil || rows == 0 {
		return refusedStock, err
	}
	var limit, has int
	err = tx.QueryRowContext(ctx, "SELECT per_user FROM sales WHERE item = ?", l.item).Scan(&limit)
	if err != nil {
		return "", err
	}
	err = tx.QueryRowContext(ctx,
		"SELECT COALESCE(SUM(quantity), 0) FROM orders WHERE item = ? AND user = ? AND status = ?",
		l.item, o.User, booked).Scan(&has)
	if err != nil {
		return "", err
	}
	if has > limit {
		return refusedLimit, nil
	}
	return booked, nil
}

// void gives an order up for good: what would still book it finds its row. If it is booked already, that is the answer.
func (l *ledger) void(ctx context.Context, o order) (verdict, error) {
	tx, err := l.db.BeginTx(ctx, nil)
	if err != nil {
		return "", err
	}
	defer func() { _ = tx.Rollback() }() // says that it was committed
	known, err := l.insert(ctx, tx, o, string(voided))
	if err != nil || known != "" {
		return known, err
	}
	return voided, tx.Commit()
}

// account is what the database knows of the sale.
type account struct {
	initial, number, limit int
	orders                 map[string]order // those that are booked, by request
}

func (l *ledger) account(ctx context.Context) (a account, err error) {
	err = l.db.QueryRowContext(ctx,
		"SELECT initial, number, per_user FROM sales WHERE item = ?", l.item).Scan(&a.initial, &a.number, &a.limit)
	if err != nil {
		return a, fmt.Errorf("the sale of %s: %w", l.item, err)
	}
	rows, err := l.db.QueryContext(ctx,
		"SELECT request, user, quantity FROM orders WHERE item = ? AND status = ?", l.item, booked)
	if err != nil {
		return a, err
	}
	defer rows.Close()
	a.orders = map[string]order{}
	for rows.Next() {
		var o order
		if err := rows.Scan(&o.Request, &o.User, &o.Quantity); err != nil {
			return a, err
		}
		a.orders[o.Request] = o
	}
	return a, rows.Err()
}
