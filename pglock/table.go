// Which table the configured name means: found once, over the first connection, and named with its schema from then on.
// driver.go's begin calls resolve; the identity goes into every lock's number (key.go).

package pglock

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// table is the table of the tokens, as the server has found it by the configured name. All statements after that name
// it with its schema, so that no session of the driver finds another one when its search_path differs.
type table struct {
	schema, name string
	quoted       string // schema and name, as statements have them
}

// identity is what the numbers of locks and the name of the channel are made of. Two clients share their locks if, and
// only if, they share the table, however each has come by its name: found along its search_path, or written with the
// schema.
//
// A table in the schema public, where nearly all are, has an identity without the schema. Numbers were made of the
// configured name alone before, and so those of nearly all users have stayed the same.
func (t table) identity() string {
	if t.schema == publicSchema {
		return t.name
	}
	return t.schema + "." + t.name
}

const publicSchema = "public"

// resolveText finds a table, or else the schema in which it would be made. $1 is the configured name, and $2 its schema
// or "".
const resolveText = `SELECT s.name, quote_ident(s.name), c.relkind::text, coalesce(c.relpersistence = 't', false)
	FROM (SELECT to_regclass($1::text) AS oid) r LEFT JOIN pg_class c ON c.oid = r.oid LEFT JOIN pg_namespace n ON n.oid = c.relnamespace,
	LATERAL (SELECT coalesce(n.nspname, nullif($2::text, ''), current_schema())::text AS name) s`

// resolve finds the table over a connection that is not set up yet, in one round trip. It refuses a temporary table,
// which other clients do not see, and what is no table.
func (s *speaker) resolve(ctx context.Context) (t table, err error) {
	configured := s.d.opts.Table
	schema, name, qualified := strings.Cut(configured, ".")
	if !qualified {
		schema, name = "", configured
	}
	answer := s.pg.ExecParams(ctx, resolveText, [][]byte{textValue(configured), textValue(schema)}, nil, binaryFormat,
		binaryFormat).Read()
	switch {
	case answer.Err != nil:
		return t, advise(answer.Err)
	case len(answer.Rows) != 1:
		return t, errors.New("the server does not tell about its tables in pg_class")
	}
	r := answer.Rows[0]
	switch {
	case r[0] == nil:
		return t, fmt.Errorf("postgres: no schema in the role's search_path exists in which the table %s could be: "+
			"write it as SCHEMA.%[1]s", configured)
	case boolOf(r[3]):
		return t, fmt.Errorf("postgres: %s is a temporary table, which other clients do not see: write the table as "+
			"SCHEMA.%[1]s", configured)
	case r[2] != nil:
		err = checkKind(configured, string(r[2]))
	}
	return table{schema: string(r[0]), name: name, quoted: string(r[1]) + "." + name}, err
}
