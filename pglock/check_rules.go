// What the server's settings mean for locks. facts reads them in one statement, and each judge function turns a few of
// them into one finding. check.go calls judge; Diagnose and the start of a driver use the same rules.

package pglock

import (
	"context"
	"fmt"
	"strings"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/enginekit"
	"github.com/interlock-go/interlock/enginekit/sqlsession"
)

// facts are the server's answers to factsText, and what the role lacks.
type facts struct {
	version          string
	standby          bool
	readOnly         bool
	fsync            bool
	commit           string // synchronous_commit as the role has it, before a session is set up
	replicates       bool   // commits wait for standbys
	standbys         int64  // that follow the server now
	rooms            [3]room
	lockRoom         int64  // in entries of the server's table of locks, for all sessions together
	locks            int64  // entries in use, of all sorts
	mayDelayDeadlock bool   // sessions of ours may leave the search for deadlocks
	lacks            string // rights that the role does not have, each with its table
	namesakes        string // other schemas that have a table of the same name
}

// room is a limit of sessions and how many there are. most is negative if there is no limit.
type room struct{ sessions, most int64 }

// factsText counts the sessions of clients three times: for the server, the database and the role, each followed by its
// limit, which is negative if there is none. Connections that are reserved for superusers are taken off the server's
// limit, unless the role is one.
//
// A role without pg_read_all_stats is not told the type of other roles' sessions. Then those with a database are
// counted, which are the clients' and a few of the server's own, so the count is rather too high.
const factsText = `WITH s AS (SELECT datname, usename FROM pg_stat_activity WHERE coalesce(backend_type = 'client backend', datid IS NOT NULL))
	SELECT current_setting('server_version'), pg_is_in_recovery(), current_setting('transaction_read_only')::bool,
	current_setting('fsync')::bool, (SELECT reset_val FROM pg_settings WHERE name = 'synchronous_commit'),
	current_setting('synchronous_standby_names') <> '',
	(SELECT count(*) FROM pg_stat_replication), (SELECT count(*) FROM s),
	current_setting('max_connections')::bigint - CASE WHEN current_setting('is_superuser')::bool THEN 0 ELSE
		current_setting('superuser_reserved_connections')::bigint + coalesce(current_setting('reserved_connections', true)::bigint, 0) END,
	(SELECT count(*) FROM s WHERE datname = current_database()), (SELECT datconnlimit FROM pg_database WHERE datname = current_database())::bigint,
	(SELECT count(*) FROM s WHERE usename = session_user), coalesce((SELECT rolconnlimit FROM pg_roles WHERE rolname = session_user), -1)::bigint,
	current_setting('max_locks_per_transaction')::bigint * (current_setting('max_connections')::bigint + current_setting('max_prepared_transactions')::bigint),
	(SELECT count(*) FROM pg_locks),
	(SELECT context <> 'superuser' FROM pg_settings WHERE name = 'deadlock_timeout') OR current_setting('is_superuser')::bool,
	(SELECT string_agg(quote_ident(n.nspname), ', ' ORDER BY n.nspname) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
		WHERE c.relname = $1::name AND n.nspname <> $2::name AND c.relkind IN ('r', 'p') AND c.relpersistence <> 't'
		AND EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attname = 'collided'))` // which one of another program has not

// mayText asks whether the role was granted the parameter. Only servers from PostgreSQL 15 on know such rights.
const mayText = `SELECT has_parameter_privilege('deadlock_timeout', 'SET')`

// facts asks for everything that judge needs, in two or three round trips. An error of the last one is left out: a
// server before 15 answers it with one.
func (d *Driver) facts(ctx context.Context) (f facts, err error) {
	found, err := d.query(ctx, factsText, textValue(d.table.name), textValue(d.table.schema))
	if err != nil {
		return f, err
	}
	if len(found) != 1 {
		return f, errSwapped
	}
	r := found[0]
	f = facts{
		version: string(r[0]), standby: boolOf(r[1]), readOnly: boolOf(r[2]), fsync: boolOf(r[3]), commit: string(r[4]),
		replicates: boolOf(r[5]), standbys: int64Of(r[6]), lockRoom: int64Of(r[13]), locks: int64Of(r[14]),
		mayDelayDeadlock: boolOf(r[15]), namesakes: string(r[16]),
	}
	for i := range f.rooms {
		f.rooms[i] = room{int64Of(r[7+2*i]), int64Of(r[8+2*i])}
	}
	if f.lacks, err = d.lacks(ctx); err != nil {
		return f, err
	}
	// Servers before PostgreSQL 15 do not know the function, and its error means that the role may not.
	if !f.mayDelayDeadlock {
		// an old server does not know the function
		if found, err := d.query(ctx, mayText); err == nil && len(found) == 1 {
			f.mayDelayDeadlock = boolOf(found[0][0])
		}
	}
	return f, nil
}

// judge returns one finding for each rule, in the order in which they are shown. It asks the server nothing.
func (d *Driver) judge(f facts) []driver.Finding {
	return []driver.Finding{
		{Check: "version", Level: driver.LevelOK, Detail: "PostgreSQL " + f.version},
		d.pooler, judgeRole(f), d.judgeTable(f), d.judgeRights(f), judgeTokens(f), d.judgeRoom(f), judgeLocks(f),
		judgeDeadlock(f),
	}
}

// lacks says which of the tables are missing and which rights the role lacks on the others, or "". To look it needs to
// read those that a list reads. It costs one round trip.
func (d *Driver) lacks(ctx context.Context) (string, error) {
	all, err := d.find(ctx)
	if d.opts.ReadOnly && err == nil && all[0].kind == "" {
		return noTables, nil
	}
	var lacks []string
	for i, t := range all {
		reads := strings.HasPrefix(t.lacks, "SELECT") && suffixes[i] != "_breaks"
		switch {
		case d.opts.ReadOnly && t.lacks != "" && !reads:
		case d.opts.ReadOnly && t.lacks != "":
			lacks = append(lacks, "the role may not SELECT in "+d.table.quoted+suffixes[i])
		case t.kind == "":
			lacks = append(lacks, "there is no "+d.table.quoted+suffixes[i])
		case t.lacks != "":
			lacks = append(lacks, "the role may not "+t.lacks+" in "+d.table.quoted+suffixes[i])
		}
	}
	return strings.Join(lacks, "; "), err
}

// noTables is what lacks says to a driver that only looks if there is no table of tokens: there are no locks then.
const noTables = "no tables"

// judgeTable warns of a table of the same name in another schema. Clients whose search_path leads there have other
// locks and would never be in the way of ours, without an error. A table that was configured with its schema cannot be
// mixed up.
func (d *Driver) judgeTable(f facts) driver.Finding {
	r := driver.Finding{Check: "table", Level: driver.LevelOK, Detail: "tokens are kept in " + d.table.quoted}
	if f.namesakes != "" && !strings.Contains(d.opts.Table, ".") {
		r.Level, r.Advice = driver.LevelWarn, "write the table as SCHEMA."+d.table.name+
			" in the settings of all clients"
		r.Detail += "; the table " + d.table.name + " is in other schemas too (" + f.namesakes +
			"): a client whose search_path finds that one " +
			"shares no locks with this one"
	}
	return r
}

// judgeRights fails without the rights on all four tables: each grant, wait, break or read needs one of them. A driver
// that only looks needs fewer, and makes no table that is missing.
func (d *Driver) judgeRights(f facts) driver.Finding {
	switch {
	case f.lacks == noTables:
		return sqlsession.MissingTables(d.table.quoted)
	case f.lacks == "" && d.opts.ReadOnly:
		return enginekit.Fine("rights", "the role may read what looking needs")
	case d.opts.ReadOnly:
		return enginekit.Fail("rights", fmt.Sprintf("GRANT SELECT ON %s, %[1]s_waits, %[1]s_readers TO the role",
			d.table.quoted), "%s", f.lacks)
	}
	if f.lacks == "" {
		return driver.Finding{
			Check: "rights", Level: driver.LevelOK,
			Detail: "the role may do with the tables what locking needs",
		}
	}
	t := d.table.quoted
	return driver.Finding{
		Check: "rights", Level: driver.LevelFail, Detail: f.lacks,
		Advice: fmt.Sprintf("GRANT SELECT, INSERT, UPDATE, DELETE ON %s, %[1]s_waits, %[1]s_breaks, %[1]s_readers TO "+
			"the role", t),
	}
}

// judgeRole fails on a standby, and on a server or role that is read-only: a grant writes its token.
func judgeRole(f facts) driver.Finding {
	const advice = "name the primary, or add target_session_attrs to the servers' names in your configuration"
	switch {
	case f.standby:
		return driver.Finding{
			Check: "role", Level: driver.LevelFail, Advice: advice,
			Detail: "the server is a standby: its advisory locks are its own, and tokens cannot be written",
		}
	case f.readOnly:
		return driver.Finding{
			Check: "role", Level: driver.LevelFail,
			Detail: "nothing may be written, so tokens cannot be", Advice: advice,
		}
	}
	return driver.Finding{Check: "role", Level: driver.LevelOK, Detail: "it can be written to"}
}

// judgeTokens says whether a token that was granted survives a crash of the server's process and of its machine.
// Without fsync it may not. With standbys that no commit waits for, a failover may forget the last tokens; those after
// it are larger all the same if the new primary's clock is not behind, so that is a warning only.
func judgeTokens(f facts) driver.Finding {
	r := driver.Finding{Check: "tokens", Level: driver.LevelOK, Detail: "they are on disk before a grant counts"}
	switch {
	case !f.fsync:
		r.Level, r.Advice = driver.LevelWarn, "set fsync to on"
		r.Detail = "fsync is off: a loss of power may destroy the database, and forget tokens"
	case f.standbys > 0 && !f.replicates:
		r.Level = driver.LevelWarn
		r.Advice = "let commits wait for the standbys that may be promoted (synchronous_standby_names), or " +
			"set the clocks of all servers over the network"
		r.Detail = fmt.Sprintf("no commit waits for the %d standbys that follow: "+
			"one that becomes the primary may not know the last tokens; they grow all the same, "+
			"unless its clock is behind by more than the time between", f.standbys)
	case f.replicates && f.commit == "local":
		r.Level, r.Advice = driver.LevelWarn, "set synchronous_commit to on for the role"
		r.Detail = "the role's synchronous_commit is local, so no grant waits for the standbys: one that becomes the " +
			"primary may not know the last tokens; they grow all the same, unless its clock is behind by more than " +
			"the time between"
	case f.commit == "off":
		r.Detail += "; for that, sessions of this engine set synchronous_commit to on"
	case f.replicates:
		r.Detail += ", and on the standbys that synchronous_standby_names wants"
	}
	return r
}

// judgeRoom compares the connections that this client may open with those that are left under the tightest of the three
// limits. It is a warning only, because a wait without a connection asks again and again.
func (d *Driver) judgeRoom(f facts) driver.Finding {
	most := int64(d.opts.Shared + d.opts.Waits)
	least := 0 // where there is the least room
	for i, of := range f.rooms {
		if of.most >= 0 && of.most-of.sessions < f.rooms[least].most-f.rooms[least].sessions {
			least = i
		}
	}
	of, owner := f.rooms[least], []string{"the server", "the database", "the role"}[least]
	r := driver.Finding{
		Check: "connections", Level: driver.LevelOK,
		Detail: fmt.Sprintf("%d of %d of %s are in use; this client opens up to %d", of.sessions, of.most, owner, most),
	}
	if of.sessions+most > of.most {
		limit := []string{"max_connections", "the database's CONNECTION LIMIT", "the role's CONNECTION LIMIT"}[least]
		r.Level = driver.LevelWarn
		r.Advice = "raise " + limit + ", or set fewer waits: beyond that, waits ask again and again"
	}
	return r
}

// judgeLocks looks at the server's table of locks, whose size is fixed at the server's start and which all sessions
// share. When it is full, the server refuses locks of every sort, for other programs too.
func judgeLocks(f facts) driver.Finding {
	r := driver.Finding{
		Check: "locks", Level: driver.LevelOK,
		Detail: fmt.Sprintf("%d in use; the server has room for some %d of all sorts", f.locks, f.lockRoom),
	}
	if f.locks > f.lockRoom*3/4 {
		r.Level, r.Advice = driver.LevelWarn, "raise max_locks_per_transaction"
	}
	return r
}

// judgeDeadlock is about crowds. Each wait that lasts longer than deadlock_timeout makes the server search for a
// deadlock among all sessions that wait for the same lock. That costs the square of their number, and the whole table
// of locks is locked meanwhile. Waits of ours cannot be in a deadlock, because a session that waits holds nothing, so
// they leave the search if the role may set that.
func judgeDeadlock(f facts) driver.Finding {
	if f.mayDelayDeadlock {
		return driver.Finding{
			Check: "crowds", Level: driver.LevelOK,
			Detail: "waits are left out of the search for deadlocks, in which they cannot be",
		}
	}
	return driver.Finding{
		Check: "crowds", Level: driver.LevelWarn,
		Detail: "the role may not set deadlock_timeout: with hundreds of clients waiting for one lock, the server's " +
			"search for deadlocks slows down all locks",
		Advice: "GRANT SET ON PARAMETER deadlock_timeout TO the role (PostgreSQL 15 and later)",
	}
}
