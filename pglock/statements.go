// The SQL: what a grant, a wait and a release say to the server. speaker.go and try.go run them by number, talk.go
// prepares them; wire.md describes them for other implementations. A change here is a change of the format.

package pglock

import (
	"strconv"
	"strings"
)

// statement is the number of one of the statements that a connection prepares when it first needs it. Prepared, each
// run costs one round trip and no parsing in the server.
type statement int

const (
	stmtTry statement = iota
	stmtTryShared
	stmtWho
	stmtNote
	stmtLock
	stmtLockShared
	stmtUnlock
	stmtUnlockShared
	stmtUnlockAll
	stmtElsewhere
	stmtElsewhereShared
	stmtPing
	stmtCancel
	stmtTerminate
	stmtLook
	stmtPin
	statements
)

// grantColumns are the columns that a grant writes, and their values: $1 to $8 are key, kind, name, how many tokens,
// nonce, owner, client and label; c.us is the server's clock in microseconds, read after the lock was given.
const grantColumns = `(key, kind, name, token, last, nonce, owner, client, label, since, pid)
	SELECT $1::bigint, $2::text, $3::bytea, c.us, c.us + $4::bigint - 1, $5::bytea, $6::bytea, $7::bytea, $8::bytea, c.at, pg_backend_pid()`

// clock reads the server's clock. It refers to l, so it is read when l's function has returned and not before: a clock
// read before a wait would give the later holder the smaller token. OFFSET 0 keeps the planner from pulling the
// subqueries apart, which would lose that order.
const clock = `LATERAL (SELECT x.at, (extract(epoch FROM x.at) * 1000000)::bigint AS us
	FROM (SELECT clock_timestamp() AS at WHERE l.ok OFFSET 0) x OFFSET 0) c`

// grantUpdate mints the token. ON CONFLICT takes the newest version of the row, whatever the statement's snapshot says:
// when the statement had to wait, its snapshot is older than the last grant.
//
// A block of tokens is given only while the clock is ahead of what was given before. Otherwise tokens would run away
// from the clock, and could repeat after a failover to a server that had not received the last of them. A row of
// another name, which has the same number by accident, is left alone, and then no row is returned.
const grantUpdate = `ON CONFLICT (key) DO UPDATE SET
	token = greatest(t.last + 1, excluded.token),
	last = CASE WHEN excluded.token > t.last THEN excluded.last ELSE t.last + 1 END,
	nonce = excluded.nonce, owner = excluded.owner, client = excluded.client, label = excluded.label,
	since = excluded.since, pid = excluded.pid
	WHERE t.name = excluded.name AND t.kind = excluded.kind
	RETURNING t.token, t.last`

// noteReader writes a row for a reader, one of several at once, with the token that g has minted. A
// session is a reader of each lock at most once.
const noteReader = `r AS (INSERT INTO {T}_readers (pid, key, token, last, owner, client, label, since)
	SELECT pg_backend_pid(), $1::bigint, g.token, g.last, $6::bytea, $7::bytea, $8::bytea, clock_timestamp() FROM g
	ON CONFLICT (pid, key) DO UPDATE SET token = excluded.token, last = excluded.last, owner = excluded.owner,
		client = excluded.client, label = excluded.label, since = excluded.since)`

// ours selects the advisory locks of this database that have one 64-bit number (objsubid 1). The database's id is taken
// from the session and not from pg_database: that table is shared among databases, so a look at it takes a place in the
// server's table of locks, which may be full.
const ours = `l.locktype = 'advisory' AND l.objsubid = 1 AND l.database = (SELECT datid FROM pg_stat_get_activity(pg_backend_pid()))`

// number is the 64-bit number again, of which pg_locks shows the halves.
const number = `((l.classid::bigint << 32) | l.objid::bigint)`

// texts are the statements over {T}, which stands for the table's name.
var texts = [statements]string{
	// Takes the lock if it is free, mints the token, and returns it. No row comes back if the lock is held, and none if
	// the number belongs to another name; in that case the lock has been taken and must be given back. To tell the two
	// apart, and to say who has the lock, in the same statement would make the server set up so much that a free lock
	// costs a sixth more.
	stmtTry: `INSERT INTO {T} AS t ` + grantColumns + `
	FROM (SELECT pg_try_advisory_lock($1) AS ok OFFSET 0) l, ` + clock + ` ` + grantUpdate,

	// The same for a reader. It is also refused if somebody waits to write.
	stmtTryShared: `WITH g AS (INSERT INTO {T} AS t ` + grantColumns + `
	FROM (SELECT pg_try_advisory_lock_shared($1) AS ok OFFSET 0) l, ` + clock + ` ` + grantUpdate + `),
	` + noteReader + ` SELECT token, last FROM g`,

	// Who was granted the lock last: the columns of the table token, kind, name, owner, client and since.
	stmtWho: `SELECT token, kind, name, owner, client, since FROM {T} WHERE key = $1::bigint`,

	// Notes who waits in a session, so that operators see it. There is one row for each session. It returns what
	// stmtWho does.
	stmtNote: `WITH n AS (INSERT INTO {T}_waits (pid, key, owner, client, label)
		VALUES ($5::int, $1::bigint, $2::bytea, $3::bytea, $4::bytea)
		ON CONFLICT (pid) DO UPDATE SET key = excluded.key, owner = excluded.owner, client = excluded.client, label = excluded.label)
	SELECT t.token, t.kind, t.name, t.owner, t.client, t.since FROM {T} t WHERE t.key = $1::bigint`,

	// The same as stmtTry, waiting: no row means that the number belongs to another name, and the lock has been taken.
	stmtLock: `INSERT INTO {T} AS t ` + grantColumns + `
	FROM (SELECT pg_advisory_lock($1) IS NOT NULL AS ok OFFSET 0) l, ` + clock + ` ` + grantUpdate,

	stmtLockShared: `WITH g AS (INSERT INTO {T} AS t ` + grantColumns + `
	FROM (SELECT pg_advisory_lock_shared($1) IS NOT NULL AS ok OFFSET 0) l, ` + clock + ` ` + grantUpdate + `),
	` + noteReader + ` SELECT token, last FROM g`,

	stmtUnlock:       `SELECT pg_advisory_unlock($1::bigint)`,
	stmtUnlockShared: `SELECT pg_advisory_unlock_shared($1::bigint)`,

	// For sessions that wait; see Leave.
	stmtUnlockAll: `SELECT pg_advisory_unlock_all()`,

	// Whether another session has the lock in the way of this one, which then has not got it: a session that has it
	// would get it once more. What is taken here ends with the statement's transaction.
	stmtElsewhere:       `SELECT NOT pg_try_advisory_xact_lock($1::bigint)`,
	stmtElsewhereShared: `SELECT NOT pg_try_advisory_xact_lock_shared($1::bigint)`,

	// A sign of life: which session answers.
	stmtPing: `SELECT pg_backend_pid()`,

	// Both name a session by its process and when that began, because the numbers of processes come again. To a role
	// that acts as another, the server does not show when its sessions began: then a process of which that is hidden is
	// taken for the one that is asked about, but is not ended.
	stmtCancel: `SELECT pg_cancel_backend(pid) FROM pg_stat_get_activity($1::int) WHERE backend_start = $2::timestamptz`,
	stmtTerminate: `SELECT CASE WHEN backend_start = $2::timestamptz THEN pg_terminate_backend(pid) END
	FROM pg_stat_get_activity($1::int) WHERE backend_start IS NOT DISTINCT FROM $2::timestamptz`,

	// Which sessions have the lock of a number, one in each row, and what each has written: pid is NULL or another's if
	// the session has just got the lock. If none has it, one row comes with NULL for the session.
	stmtLook: `SELECT t.kind, t.name, coalesce(r.token, t.token), coalesce(r.last, t.last), coalesce(r.owner, t.owner),
		coalesce(r.client, t.client), coalesce(r.label, t.label), coalesce(r.since, t.since),
		CASE WHEN l.mode = 'ShareLock' THEN r.pid ELSE t.pid END, t.collided, l.pid
	FROM {T} t LEFT JOIN pg_locks l ON l.granted AND ` + ours + ` AND ` + number + ` = t.key
	LEFT JOIN {T}_readers r ON l.mode = 'ShareLock' AND r.pid = l.pid AND r.key = t.key
	WHERE t.key = $1::bigint`,

	// A row whose number is shared must stay for ever, because the other name has moved on because of it: without the
	// row, clients that come later would stay at the first number while others hold the second.
	stmtPin: `UPDATE {T} SET collided = true WHERE key = $1::bigint AND (kind <> $2::text OR name <> $3::bytea) RETURNING key`,
}

// textsFor returns the statements over a table, whose name is quoted where it needs that.
func textsFor(table string) *[statements]string {
	own := texts
	for i := range own {
		own[i] = strings.ReplaceAll(own[i], "{T}", table)
	}
	return &own
}

// names are what the statements are called in a session.
var names = func() (all [statements]string) {
	for i := range all {
		all[i] = "interlock_" + strconv.Itoa(i)
	}
	return all
}()

// String returns the statement's name in a session.
func (s statement) String() string { return names[s] }

// createTexts make the tables. Names and what is shown to people are bytes, because the database's encoding may lack
// some characters. What is of use only for the moment is UNLOGGED: it costs no write to the server's log, and is empty
// after a crash, which has ended the sessions too. A fillfactor of 50 leaves room in the pages, so that a grant writes
// the new row version into the same page and changes no index.
var createTexts = []string{
	`CREATE TABLE IF NOT EXISTS {T} (
		key bigint PRIMARY KEY,
		kind text NOT NULL,
		name bytea NOT NULL,
		token bigint NOT NULL,
		last bigint NOT NULL,
		nonce bytea NOT NULL,
		owner bytea NOT NULL,
		client bytea NOT NULL,
		label bytea NOT NULL,
		since timestamptz NOT NULL,
		pid int NOT NULL,
		collided boolean NOT NULL DEFAULT false
	) WITH (fillfactor = 50)`,
	`CREATE UNLOGGED TABLE IF NOT EXISTS {T}_waits (
		pid int PRIMARY KEY,
		key bigint NOT NULL,
		owner bytea NOT NULL,
		client bytea NOT NULL,
		label bytea NOT NULL
	) WITH (fillfactor = 50)`,
	`CREATE UNLOGGED TABLE IF NOT EXISTS {T}_breaks (
		key bigint NOT NULL,
		pid int NOT NULL,
		token bigint NOT NULL,
		asked timestamptz NOT NULL DEFAULT now(),
		PRIMARY KEY (pid, key)
	)`,
	`CREATE UNLOGGED TABLE IF NOT EXISTS {T}_readers (
		pid int NOT NULL,
		key bigint NOT NULL,
		token bigint NOT NULL,
		last bigint NOT NULL,
		owner bytea NOT NULL,
		client bytea NOT NULL,
		label bytea NOT NULL,
		since timestamptz NOT NULL,
		PRIMARY KEY (pid, key)
	) WITH (fillfactor = 50)`,
}
