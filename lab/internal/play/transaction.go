package play

import (
	"context"
	"database/sql"
	"fmt"
	"strings"

	"github.com/interlock-go/interlock/lab/internal/story"
	"github.com/interlock-go/interlock/locktx"
)

// Begin begins a transaction of package locktx.
func (c *Process) Begin() {
	c.p.Helper()
	c.must(&order{Do: "begin"})
	c.Says("tx := locktx.Begin", "tx := locktx.Begin")
}

// Hold binds the lock to the transaction. From then on it is not the process's to unlock.
func (c *Process) Hold() {
	c.p.Helper()
	c.must(&order{Do: "hold"})
	c.Says("tx.Hold(lease): the transaction releases the lock when it is complete.",
		"tx.Hold(lease)：事务完成时由它释放锁。")
}

// Count returns how many rows the user has, as the transaction sees it.
func (c *Process) Count() int {
	c.p.Helper()
	n := c.must(&order{Do: "count"}).N
	c.p.said(c.name, story.Same(countUser+"  →  "+Answer(n, nil)), toDatabase)
	return int(n)
}

// Insert adds the user.
func (c *Process) Insert() {
	c.p.Helper()
	c.must(&order{Do: "insert"})
	c.p.said(c.name, story.T(insertUser+"  →  rows: 1", insertUser+"  →  1 行"), toDatabase)
}

// Commit commits, and returns the outcome and whether the lock was still held when OnCompletion was told of it.
func (c *Process) Commit() (outcome string, held bool) {
	c.p.Helper()
	c.send(&order{Do: "commit"})
	return c.Completed("tx.Commit")
}

// BeginCommit sends the COMMIT; Completed waits for what becomes of it.
func (c *Process) BeginCommit() {
	c.p.Helper()
	c.send(&order{Do: "commit"})
	c.Says("tx.Commit: sends COMMIT.", "tx.Commit：发出 COMMIT。")
}

// Rollback rolls back, and returns what Commit does.
func (c *Process) Rollback() (outcome string, held bool) {
	c.p.Helper()
	c.send(&order{Do: "rollback"})
	return c.Completed("tx.Rollback")
}

// outcomes are those of a transaction in Chinese.
var outcomes = strings.NewReplacer("committed", "已提交", "rolled back", "已回滚", "outcome unknown", "结果未知")

// Completed waits for the completion of the transaction.
func (c *Process) Completed(call string) (outcome string, held bool) {
	c.p.Helper()
	r := c.answer()
	if r.Outcome == "" {
		c.p.Fatalf("%s: %s: %s", c.name, call, r.Why)
	}
	c.p.step(c.name, story.Asks, story.Join(story.T("%s  →  OnCompletion is told: ", "%s  →  OnCompletion 得知：", call),
		story.Text{EN: r.Outcome, ZH: outcomes.Replace(r.Outcome)}))
	c.p.set(c.name, story.Idle)
	return r.Outcome, r.OK
}

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
