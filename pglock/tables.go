// The tables: are they there, may the role use them, and how they are made. driver.go's begin calls createTables once;
// check_rules.go uses find for its finding on rights.

package pglock

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// suffixes are what the tables' names end with, in the order of createTexts.
var suffixes = []string{"", "_waits", "_breaks", "_readers"}

// tableState is what the server has under the name of a table.
type tableState struct {
	kind  string // as in pg_class, or "" if there is nothing
	lacks string // the rights that the role does not have, as a list for people
}

// foundText returns one row for each suffix, in their order. $1 is the first table's name, $2 the suffixes.
const foundText = `SELECT c.relkind::text, (SELECT string_agg(p, ', ') FROM unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE']) p
		WHERE NOT has_table_privilege(c.oid, p))
	FROM unnest(string_to_array($2::text, ' ')) WITH ORDINALITY s (suffix, i)
	LEFT JOIN pg_class c ON c.oid = to_regclass($1::text || s.suffix) ORDER BY s.i`

// find looks for all tables, in one round trip.
func (d *Driver) find(ctx context.Context) (all []tableState, err error) {
	answer, err := d.query(ctx, foundText, textValue(d.table.quoted), textValue(strings.Join(suffixes, " ")))
	if err == nil && len(answer) != len(suffixes) {
		err = errors.New("the server does not tell about its tables in pg_class")
	}
	for _, r := range answer {
		all = append(all, tableState{string(r[0]), string(r[1])})
	}
	return all, err
}

// createTables makes the tables that are missing, in the schema of the first one. It looks first, so that a role
// without the right to create tables can lock where they are there. A driver that only looks makes none. It costs two
// round trips if nothing is missing.
func (d *Driver) createTables(ctx context.Context) error {
	all, err := d.find(ctx)
	if err != nil {
		return advise(err)
	}
	for i := range suffixes {
		switch {
		case all[i].kind != "":
			err = checkKind(d.table.quoted+suffixes[i], all[i].kind)
		case !d.opts.ReadOnly:
			err = d.createTable(ctx, i)
		}
		if err != nil {
			return err
		}
	}
	if d.opts.ReadOnly && all[0].kind == "" {
		return nil // there is nothing whose format could be another
	}
	return d.checkFormat(ctx)
}

// isUnused reports whether err of a list is that of a driver that only looks and has found no table of tokens. Then
// there are no locks. The others alone may not be missing: without one of them a list would lack holders.
func (d *Driver) isUnused(ctx context.Context, err error) bool {
	if !d.opts.ReadOnly || stateOf(err) != stateNoTable {
		return false
	}
	all, failed := d.find(ctx)
	return failed == nil && all[0].kind == ""
}

// checkKind refuses what is no table of rows (r) and no partitioned table (p). Behind a view is a table with another
// name: clients that know it by that would take other locks.
func checkKind(name, kind string) error {
	if kind != "r" && kind != "p" {
		return fmt.Errorf("postgres: %s is a view, an index or something else that is no table: name the table itself",
			name)
	}
	return nil
}

// mostCreations bounds the attempts to make a table.
const mostCreations = 5

// createTable makes one table. Two clients that do so at once get an error about the system's own tables, although both
// said IF NOT EXISTS: it is checked before the insert into the catalogue. The next look finds the table. If there is
// none after some attempts, something else has its name.
func (d *Driver) createTable(ctx context.Context, i int) error {
	name := d.table.quoted + suffixes[i]
	var err error
	for range mostCreations {
		_, err = d.query(ctx, d.text(createTexts[i]))
		switch stateOf(err) {
		case stateUnique, stateDuplicate, stateSameType:
		default:
			return advise(err)
		}
		switch all, failed := d.find(ctx); {
		case failed != nil:
			return advise(failed)
		case all[i].kind != "":
			return checkKind(name, all[i].kind)
		}
	}
	return fmt.Errorf("postgres: the table %s cannot be made, because its schema has something else of that name, "+
		"such as a type (name "+
		"another table, or drop what is in the way): %w", name, err)
}

// checkFormat refuses a table of another program, or of a version that this one cannot read. It reads no row; a missing
// column is an error all the same.
func (d *Driver) checkFormat(ctx context.Context) error {
	_, err := d.query(ctx, d.text(
		`SELECT key, kind, name, token, last, nonce, owner, client, label, since, pid, collided FROM {T} LIMIT 0`))
	if stateOf(err) == stateNoColumn {
		return fmt.Errorf("postgres: the table %s belongs to another program or version: %w", d.table.quoted, err)
	}
	return advise(err)
}
