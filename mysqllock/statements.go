// The SQL: what a grant, a wait and a release say to the server. speaker.go runs them by number, talk.go prepares them;
// wire.md describes them for other implementations. A change here is a change of the format.

package mysqllock

import (
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// statement is the number of one of the statements that a connection prepares when it first needs it. The statement
// that waits is not among them: its text carries the note.
type statement int

const (
	stmtTry statement = iota
	stmtMint
	stmtUnlock
	statements
)

// clock is the server's, in microseconds. It is read once for each statement, when that begins, and counts in UTC
// because sessions are set to it: in a zone with summer time one hour of each year comes twice.
const clock = "CAST(UNIX_TIMESTAMP(NOW(6)) * 1000000 AS UNSIGNED)"

// blockFlag is added to a token on its way to the client, by LAST_INSERT_ID, if the whole block was granted. Tokens
// have 51 bits until the year 2041, so it is in nobody's way.
const blockFlag = 1 << 62

// What mints a token. It takes the identity, kind, name, what to add to the first token for the last one, owner,
// client, label and the lock's name. One row is affected if the lock is new, two if it is not.
//
// The token is the clock, or one more than the last one if the clock is not beyond that; then the block has one token,
// or tokens would run away from the clock and could come again after a failover. Assignments are made from left to
// right, so "last" is the old one until it is assigned. The value of LAST_INSERT_ID comes back with the statement's
// answer, which is one packet: no second statement asks for it.
const (
	// The parts of a statement that mints a token. It takes the identity, kind, name, what to add to the first token
	// for the last one, owner, client, label and the lock's name. One row is affected if the lock is new, two if it is
	// not, none if the lock was not taken.
	//
	// The token is the clock, or one more than the last one if the clock is not beyond that. In the second case the
	// block has one token, or else tokens would run away from the clock and could come again after a failover.
	// Assignments are made from left to right, so "last" is the old one until it is assigned. The value of
	// LAST_INSERT_ID comes back in the packet of the statement's answer: no second statement asks for it.
	intoTable = `INSERT INTO TABLE (id, kind, name, token, last, owner, client, label, since, session) `

	values = `?, ?, ?, LAST_INSERT_ID(` + clock + ` + FLAG) - FLAG, ` + clock + ` + ?, ?, ?, ?, ` + clock + `, `

	orUpdate = ` ON DUPLICATE KEY UPDATE
token = IF(VALUES(token) > last, LAST_INSERT_ID(VALUES(token) + FLAG) - FLAG, LAST_INSERT_ID(last + 1)),
last = IF(VALUES(token) > last, VALUES(last), last + 1),
owner = VALUES(owner), client = VALUES(client), label = VALUES(label), since = VALUES(since), session = VALUES(session)`
)

// texts are the prepared statements over TABLE.
var texts = [statements]string{
	// Takes the lock if it is free, and mints the token, in one round trip. The server evaluates the condition once,
	// and no row is affected if it does not hold.
	stmtTry: intoTable + "SELECT " + values + "CONNECTION_ID() FROM DUAL WHERE GET_LOCK(?, 0) = 1" + orUpdate,

	// After a wait, mints the token if this session really has the lock, and otherwise answers with errNull. This form
	// is quicker than that with SELECT, and the error is for a case that does not happen on a server without a proxy.
	stmtMint: intoTable + "VALUES (" + values + "IF(IS_USED_LOCK(?) = CONNECTION_ID(), CONNECTION_ID(), NULL))" +
		orUpdate,

	stmtUnlock: "SELECT RELEASE_LOCK(?)",
}

// textsFor returns the prepared statements over a table, whose name is one that needs no quotes.
func textsFor(table string) *[statements]string {
	own := texts
	fill := strings.NewReplacer("TABLE", table, "FLAG", fmt.Sprint(uint64(blockFlag)))
	for i := range own {
		own[i] = fill.Replace(own[i])
	}
	return &own
}

// columns are those of a row that look and list read; heldBy, the session that has the lock now, or 0, follows them.
const columns = "kind, name, token, last, owner, client, label, since, session"

// lookText reads one lock, and who has it.
func (d *Driver) lookText(id lockID) string {
	return fmt.Sprintf("SELECT %s, IFNULL(IS_USED_LOCK('%s'), 0) FROM %s WHERE id = x'%s'", columns, id.lock(),
		d.opts.Table, id.hex())
}

// waitText waits for a lock. Its first column says which session had it before, or 0; the second is 1 if this session
// has it now, 0 if the time is over and NULL after an interruption. The comment is for operators, who find it in the
// server's list of processes; see inspect.go.
func (d *Driver) waitText(r *driver.Request, id lockID) string {
	lock := id.lock()
	return "SELECT /*" + waitMark + hex.EncodeToString([]byte(noteOf(r))) + "*/ IFNULL(IS_USED_LOCK('" + lock +
		"'), 0), GET_LOCK('" +
		lock + "', " + seconds(d.opts.Slice) + ")"
}

// seconds writes a duration as the server reads it. It has three decimals.
func seconds(t time.Duration) string { return strconv.FormatFloat(t.Seconds(), 'f', 3, 64) }

// createTexts make the tables, whose names are put in. Names are bytes, because a collation would take two of them for
// the same, and what is shown to people need not be in the server's character set. The comment is the format's version;
// see checkFormat.
var createTexts = []string{
	`CREATE TABLE IF NOT EXISTS %s (
id BINARY(30) NOT NULL PRIMARY KEY,
kind VARBINARY(16) NOT NULL,
name VARBINARY(512) NOT NULL,
token BIGINT UNSIGNED NOT NULL,
last BIGINT UNSIGNED NOT NULL,
owner VARBINARY(255) NOT NULL,
client VARBINARY(255) NOT NULL,
label VARBINARY(255) NOT NULL,
since BIGINT UNSIGNED NOT NULL,
session BIGINT UNSIGNED NOT NULL
) ENGINE = InnoDB COMMENT = 'interlock 1'`,
	`CREATE TABLE IF NOT EXISTS %s (
id BINARY(30) NOT NULL PRIMARY KEY,
token BIGINT UNSIGNED NOT NULL,
session BIGINT UNSIGNED NOT NULL,
asked BIGINT UNSIGNED NOT NULL,
KEY (session)
) ENGINE = InnoDB COMMENT = 'interlock 1'`,
}
