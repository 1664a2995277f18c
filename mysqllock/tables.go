// The tables: are they there, are they ours, and how they are made. driver.go's begin calls createTables once.

package mysqllock

import (
	"context"
	"fmt"
	"strings"
)

// createTables makes the tables that are missing. It looks first, so that a user without CREATE can lock where they are
// there. IF NOT EXISTS makes it no error that another client was first. A driver that only looks makes none. It costs
// three round trips if nothing is missing.
func (d *Driver) createTables(ctx context.Context) error {
	for i, suffix := range []string{"", "_breaks"} {
		if i > 0 && d.opts.ReadOnly {
			break // no list reads it
		}
		table := d.opts.Table + suffix
		_, err := d.ask(ctx, "SELECT 1 FROM "+table+" LIMIT 0")
		switch {
		case d.isUnused(err):
			return nil // there is nothing whose format could be another
		case numberOf(err) == errNoTable:
			_, err = d.ask(ctx, fmt.Sprintf(createTexts[i], table))
		}
		if err != nil {
			return advise(err)
		}
	}
	return d.checkFormat(ctx)
}

// isUnused reports whether err of a look is that of a driver that only looks and has found no table of tokens. Then
// there are no locks.
func (d *Driver) isUnused(err error) bool { return d.opts.ReadOnly && numberOf(err) == errNoTable }

// format is what the comments of the tables must be.
const format = "interlock 1"

// checkFormat refuses tables of another program, of a version that this one cannot read, and of a storage engine that
// loses committed rows in a crash.
func (d *Driver) checkFormat(ctx context.Context) error {
	rows, err := d.ask(ctx, fmt.Sprintf("SELECT TABLE_COMMENT, ENGINE FROM information_schema.TABLES "+
		"WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME IN ('%[1]s', '%[1]s_breaks')", d.opts.Table))
	if err != nil {
		return err
	}
	for _, r := range rows {
		switch {
		case r.text(0) != format:
			return fmt.Errorf("mysql: the comment of table %s or %[1]s_breaks is %q and must be %q: it belongs to "+
				"another program or version",
				d.opts.Table, r.text(0), format)
		case !strings.EqualFold(r.text(1), "InnoDB"):
			return fmt.Errorf("mysql: table %s or %[1]s_breaks is kept by %s and must be kept by InnoDB: tokens "+
				"would not survive a crash",
				d.opts.Table, r.text(1))
		}
	}
	return nil
}
