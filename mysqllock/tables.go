package mysqllock

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// createTables makes the tables that are missing. A user who may not do that can lock all the same when they are there.
func (d *Driver) createTables(ctx context.Context) error {
	for i, suffix := range []string{"", "_breaks"} {
		table := d.opts.Table + suffix
		_, err := d.ask(ctx, "SELECT 1 FROM "+table+" LIMIT 0")
		if numberOf(err) == errNoTable {
			_, err = d.ask(ctx, fmt.Sprintf(createTexts[i], table))
		}
		if err != nil {
			return advise(err)
		}
	}
	return d.checkFormat(ctx)
}

// format is what the tables' comments say.
const format = "interlock 1"

// checkFormat refuses tables that are not ours, or of a version that this one cannot read.
func (d *Driver) checkFormat(ctx context.Context) error {
	rows, err := d.ask(ctx, fmt.Sprintf("SELECT TABLE_COMMENT, ENGINE FROM information_schema.TABLES "+
		"WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME IN ('%[1]s', '%[1]s_breaks')", d.opts.Table))
	if err != nil {
		return err
	}
	for _, r := range rows {
		switch {
		case r.text(0) != format:
			return fmt.Errorf("mysql: the comment of table %s or %[1]s_breaks is %q and must be %q: it belongs to another program or version",
				d.opts.Table, r.text(0), format)
		case !strings.EqualFold(r.text(1), "InnoDB"):
			return fmt.Errorf("mysql: table %s or %[1]s_breaks is kept by %s and must be kept by InnoDB: tokens would not survive a crash",
				d.opts.Table, r.text(1))
		}
	}
	return nil
}

const (
	// pruneAge is how old a row must be, on the server's clock. The next token of the lock is larger without it, by as much.
	pruneAge = 24 * time.Hour
)

// Prune removes rows of locks that nobody has used for a day, in a part of the table.
func (s *speaker) Prune() {
	d := s.d
	d.mu.Lock()
	after := d.cursor
	d.mu.Unlock()
	where := "TRUE"
	if after != "" {
		where = "id > x'" + after + "'"
	}
	rows, err := s.query(fmt.Sprintf("SELECT LOWER(HEX(id)), last, last < %s - %d AND IS_FREE_LOCK(CONCAT('%s', LOWER(HEX(id)))) FROM %s WHERE %s ORDER BY id LIMIT %d",
		clock, pruneAge.Microseconds(), lockPrefix, d.opts.Table, where, chunk))
	if err != nil {
		return // another time
	}
	next := ""
	for i, r := range rows {
		if i == chunk-1 {
			next = r.text(0)
		}
		if r.uint(2) != 1 {
			continue
		}
		// Who has got the lock meanwhile has written a new last token, or finds no row and takes the clock.
		if s.run(fmt.Sprintf("DELETE FROM %s WHERE id = x'%s' AND last = %s", d.opts.Table, r.text(0), r.text(1))) != nil {
			return
		}
	}
	if next == "" {
		_ = s.run(fmt.Sprintf("DELETE FROM %s_breaks WHERE asked < %s - %d", d.opts.Table, clock, pruneAge.Microseconds())) // another time
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.cursor = next
}
