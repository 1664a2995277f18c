package play

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/interlock-go/interlock/locktx"
)

// What a process says in its transaction, as the exhibit does.
const (
	countUser  = "SELECT COUNT(*) FROM users WHERE name = 'ann'"
	insertUser = "INSERT INTO users VALUES ('ann')"
)

// transaction is that of a process.
type transaction struct {
	tx      *locktx.Tx
	outcome string
	held    bool // the lock, when the outcome was known
}

// transact carries out an order about the process's transaction.
func (s *server) transact(ctx context.Context, o *order) *report {
	var err error
	r := &report{OK: true}
	t := &s.transaction
	switch o.Do {
	case "begin":
		*t = transaction{}
		// A context that outlasts the order: it bounds the end of the transaction too.
		t.tx, err = locktx.Begin(context.Background(), s.db.db, &sql.TxOptions{Isolation: sql.LevelReadCommitted})
	case "hold":
		t.tx.Hold(s.lease)
		t.tx.OnCompletion(func(o locktx.Outcome) { t.outcome, t.held = o.String(), s.lease.Err() == nil })
	case "count":
		err = t.tx.QueryRowContext(ctx, "SELECT COUNT(*) FROM users WHERE name = ?", "ann").Scan(&r.N)
	case "insert":
		_, err = t.tx.ExecContext(ctx, "INSERT INTO users VALUES (?)", "ann")
	case "commit":
		return t.completed(t.tx.Commit())
	case "rollback":
		return t.completed(t.tx.Rollback())
	}
	if err != nil {
		return said(err)
	}
	return r
}

// completed reports the outcome. An error that belongs to it is no news: the outcome says it.
func (t *transaction) completed(err error) *report {
	return &report{OK: t.held, Outcome: t.outcome, Why: fmt.Sprint(err)}
}
