package play

import (
	"context"
	"database/sql"
	"fmt"

	_ "github.com/go-sql-driver/mysql" // the articles' database
)

// stock is the table of a shop, as a process reads and writes it.
type stock struct{ db *sql.DB }

// Goods is the table that the experiments on stock use, with one article, number 1.
const Goods = "CREATE TABLE goods (id INT PRIMARY KEY, number INT NOT NULL)"

// obey carries out one order on the table: the steps of check-then-write, one at a time.
func (s *stock) obey(ctx context.Context, o *order) *report {
	var err error
	r := &report{OK: true}
	switch o.Do {
	case "database":
		s.db, err = sql.Open("mysql", o.URL)
	case "read":
		err = s.db.QueryRowContext(ctx, "SELECT number FROM goods WHERE id = 1").Scan(&r.N)
	case "write":
		_, err = s.db.ExecContext(ctx, "UPDATE goods SET number = ? WHERE id = 1", o.N)
	default:
		err = fmt.Errorf("unknown order %q", o.Do)
	}
	if err != nil {
		return said(err)
	}
	return r
}
