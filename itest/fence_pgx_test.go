package itest

import (
	"context"
	"fmt"
	"testing"

	"github.com/interlock-go/interlock/fence"
	"github.com/jackc/pgx/v5"
)

// checkByPgx checks within a transaction of pgx, as programs without database/sql do.
func checkByPgx(ctx context.Context, g *fence.SQLGuard, tx pgx.Tx, resource string, s fence.Stamp) error {
	return g.CheckBy(ctx, func(ctx context.Context, query string, args ...any) fence.Row {
		return tx.QueryRow(ctx, query, args...)
	}, resource, s)
}

func TestSQLGuard_ByPgx_IsOneFenceWithDatabaseSQL(t *testing.T) {
	db, random := postgreSQL.connect(t), newRand(t)
	g := postgreSQL.guard(t, db)
	config, err := pgx.ParseConfig("postgres://postgres@" + postgreSQL.addr(t) + "/postgres?sslmode=disable")
	if err != nil {
		t.Fatal(err)
	}
	conn, err := pgx.ConnectConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	var model fence.MemoryGuard
	for i := range 200 {
		resource := fmt.Sprintf("shared%d", i/8)
		s := fence.Stamp{
			Token: 1 + random.Uint64N(4), Nonce: string(rune('a' + random.IntN(2))), Shared: random.IntN(2) == 0,
		}
		var got error
		if random.IntN(2) == 0 {
			got = pgx.BeginFunc(t.Context(), conn, func(tx pgx.Tx) error {
				return checkByPgx(t.Context(), g, tx, resource, s)
			})
		} else {
			tx, err := db.BeginTx(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			if got = g.Check(t.Context(), tx, resource, s); got == nil {
				got = tx.Commit()
			} else {
				_ = tx.Rollback()
			}
		}
		if want := model.Check(resource, s); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("%d: %s, %v: got %v, want %v", i, resource, s, got, want)
		}
	}
}
