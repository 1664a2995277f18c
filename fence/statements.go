package fence

import (
	"errors"
	"fmt"
	"strings"
)

// The texts of the statements, one set for each dialect (sql.go runs them).

// statements are the texts of one guard. In those of MySQL each parameter is a question mark. The others have $1 for
// the resource, $2 for the token and $3 for the nonce, which SQLite understands too.
type statements struct{ create, probe, raiseWriter, raiseReader, look string }

// mostIdentifier is how long a name may be: PostgreSQL cuts longer ones off.
const mostIdentifier = 63

// quote returns the table's name as the database wants it. Names that would need escaping are refused.
func quote(d Dialect, table string) (string, error) {
	mark := `"`
	switch d {
	case MySQL:
		mark = "`"
	case PostgreSQL, SQLite:
	default:
		return "", fmt.Errorf("%v is no dialect: use fence.MySQL, fence.PostgreSQL or fence.SQLite", d)
	}
	if table == "" {
		return "", errors.New("the name of the table is empty")
	}
	parts := strings.Split(table, ".")
	if len(parts) > 2 {
		return "", fmt.Errorf("the table %q has too many dots: it is a name, or a schema and a name", table)
	}
	for i, part := range parts {
		if !identifier(part) {
			return "", fmt.Errorf("the table %q must be a name of 1 to %d letters, digits and underscores that does "+
				"not begin with a digit, or two of them with a dot between", table, mostIdentifier)
		}
		parts[i] = mark + part + mark
	}
	return strings.Join(parts, "."), nil
}

// identifier reports whether name needs no thought on any database.
func identifier(name string) bool {
	for i, c := range []byte(name) {
		letter := c == '_' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return name != "" && len(name) <= mostIdentifier
}

// Names are compared byte by byte on every database. COLLATE "C" and VARBINARY see to it, also where 'a' = 'A' and 'a'
// = 'a '.
const (
	createMySQL = `CREATE TABLE IF NOT EXISTS %s (
	resource VARBINARY(512) NOT NULL PRIMARY KEY,
	writer_token BIGINT NOT NULL,
	writer_nonce VARBINARY(255) NOT NULL,
	reader_token BIGINT NOT NULL,
	reader_nonce VARBINARY(255) NOT NULL
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC`

	createOther = `CREATE TABLE IF NOT EXISTS %s (
	resource TEXT %s NOT NULL PRIMARY KEY,
	writer_token BIGINT NOT NULL,
	writer_nonce TEXT NOT NULL,
	reader_token BIGINT NOT NULL,
	reader_nonce TEXT NOT NULL
)`

	probe = `SELECT resource, writer_token, writer_nonce, reader_token, reader_nonce FROM %s WHERE 1 = 0`
)

// On PostgreSQL and SQLite one statement checks and raises: it returns a row if the stamp has passed. The first touch
// inserts the row. If another transaction is inserting or changing it, the statement waits for that one's end and then
// judges what it has left. A row that is there is locked even if the condition does not hold.
const (
	raiseWriterOther = `INSERT INTO %s AS f (resource, writer_token, writer_nonce, reader_token, reader_nonce)
VALUES ($1, CAST($2 AS BIGINT), $3, 0, '')
ON CONFLICT (resource) DO UPDATE SET writer_token = CAST($2 AS BIGINT), writer_nonce = $3
WHERE (f.writer_token < CAST($2 AS BIGINT) OR f.writer_token = CAST($2 AS BIGINT) AND f.writer_nonce = $3)
	AND (f.reader_token < CAST($2 AS BIGINT) OR f.reader_token = CAST($2 AS BIGINT) AND f.reader_nonce = $3)
RETURNING 1`

	raiseReaderOther = `INSERT INTO %s AS f (resource, writer_token, writer_nonce, reader_token, reader_nonce)
VALUES ($1, 0, '', CAST($2 AS BIGINT), $3)
ON CONFLICT (resource) DO UPDATE SET
	reader_nonce = CASE WHEN f.reader_token < CAST($2 AS BIGINT) THEN $3 ELSE f.reader_nonce END,
	reader_token = CASE WHEN f.reader_token < CAST($2 AS BIGINT) THEN CAST($2 AS BIGINT) ELSE f.reader_token END
WHERE f.writer_token < CAST($2 AS BIGINT) OR f.writer_token = CAST($2 AS BIGINT) AND f.writer_nonce = $3
RETURNING 1`

	lookOther = `SELECT writer_token, writer_nonce, reader_token, reader_nonce FROM %s WHERE resource = $1`
)

// On MySQL the condition is repeated for each column, and the nonce comes first. Assignments see the ones before them,
// and with a nonce that was changed the condition for the token is still what it was. With MariaDB's mode
// SIMULTANEOUS_ASSIGNMENT, where they do not, it is the same. Waiting and locking are as above, because the only unique
// key is the primary one. The last statement locks what it reads, because a plain SELECT could show an older snapshot.
const (
	raiseWriterMySQL = `INSERT INTO %s (resource, writer_token, writer_nonce, reader_token, reader_nonce)
VALUES (?, ?, ?, 0, '')
ON DUPLICATE KEY UPDATE
	writer_nonce = IF((writer_token < ? OR writer_token = ? AND writer_nonce = ?)
		AND (reader_token < ? OR reader_token = ? AND reader_nonce = ?), ?, writer_nonce),
	writer_token = IF((writer_token < ? OR writer_token = ? AND writer_nonce = ?)
		AND (reader_token < ? OR reader_token = ? AND reader_nonce = ?), ?, writer_token)`

	raiseReaderMySQL = `INSERT INTO %s (resource, writer_token, writer_nonce, reader_token, reader_nonce)
VALUES (?, 0, '', ?, ?)
ON DUPLICATE KEY UPDATE
	reader_nonce = IF((writer_token < ? OR writer_token = ? AND writer_nonce = ?) AND reader_token < ?, ?, reader_nonce),
	reader_token = IF((writer_token < ? OR writer_token = ? AND writer_nonce = ?) AND reader_token < ?, ?, reader_token)`

	lookMySQL = `SELECT writer_token, writer_nonce, reader_token, reader_nonce FROM %s WHERE resource = ? FOR UPDATE`
)

// statementsFor writes the table's quoted name into the texts.
func statementsFor(d Dialect, table string) statements {
	in := func(text string) string { return fmt.Sprintf(text, table) }
	if d == MySQL {
		return statements{
			create: in(createMySQL), probe: in(probe), look: in(lookMySQL),
			raiseWriter: in(raiseWriterMySQL), raiseReader: in(raiseReaderMySQL),
		}
	}
	collation := ""
	if d == PostgreSQL {
		collation = `COLLATE "C"`
	}
	return statements{
		create: fmt.Sprintf(createOther, table, collation), probe: in(probe), look: in(lookOther),
		raiseWriter: in(raiseWriterOther), raiseReader: in(raiseReaderOther),
	}
}
