// What the server's settings mean for locks. refusal is asked by every new session (dial.go), because there the locks
// would not exclude; judge and the others make findings for check.go.

package mysqllock

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/enginekit"
)

// galeraReason is why a Galera cluster is refused, for two errors.
const galeraReason = "in a Galera cluster GET_LOCK is a lock of one node, so clients of two nodes would both have " +
	"it, and MariaDB refuses it there (MDEV-30473): keep locks on a server that stands alone, or use another engine"

// refusal says why locks cannot be kept on a server with these settings at all, or returns nil. Options.Check does not
// soften it.
func refusal(s map[string]string) error {
	switch {
	case isGalera(s):
		return errors.New("mysql: the server is a node of a Galera cluster: " + galeraReason)
	case hasSeveralPrimaries(s):
		return errors.New("mysql: the server is in a replication group with several primaries: GET_LOCK is a lock of " +
			"one server, so clients of two of them would both have it; name a server that stands alone, or make the " +
			"group one with a single primary")
	case isTooOld(s):
		return fmt.Errorf("mysql: the server is version %s; MariaDB 10.3 or MySQL 5.7.8 is needed: before, a session "+
			"has one lock only, or statements cannot be given the time that they need", s["version"])
	case isOn(s["log_bin"]) && strings.EqualFold(s["binlog_format"], "STATEMENT"):
		return errors.New("mysql: the server logs statements (binlog_format=STATEMENT), so its replicas would take " +
			"the locks too; set binlog_format to MIXED or ROW")
	}
	return nil
}

// isOn reads a setting that the server shows as ON or 1.
func isOn(value string) bool { return strings.EqualFold(value, "ON") || value == "1" }

// isGalera reports whether the server is a node of a Galera cluster. A server may be built for it and not use it: then
// the provider is none.
func isGalera(s map[string]string) bool {
	provider := strings.ToLower(s["wsrep_provider"])
	return isOn(s["wsrep_on"]) && provider != "" && provider != "none"
}

// hasSeveralPrimaries reports whether a replication group lets more than one server be written to.
func hasSeveralPrimaries(s map[string]string) bool {
	return s["group_replication_group_name"] != "" &&
		strings.EqualFold(s["group_replication_single_primary_mode"], "OFF")
}

// isTooOld reads "10.11.6-MariaDB-log" or "8.0.36". A version that cannot be read is not refused.
func isTooOld(s map[string]string) bool {
	oldest := 50708
	if isMariaDB(s) {
		oldest = 100300
	}
	number, ok := versionOf(s["version"])
	return ok && number < oldest
}

// versionOf makes 101106 of 10.11.6. A third part that is missing or no number counts as 0.
func versionOf(text string) (number int, ok bool) {
	parts := strings.SplitN(text, ".", 3)
	for i := range 3 {
		part := 0
		if i < len(parts) {
			digits := strings.IndexFunc(parts[i]+"-", func(r rune) bool { return r < '0' || r > '9' })
			n, err := strconv.Atoi(parts[i][:digits])
			if err != nil && i < 2 {
				return 0, false
			}
			part = n
		}
		number = number*100 + part
	}
	return number, true
}

// numberIn reads a number, or returns 0 if it is none.
func numberIn(text string) uint64 {
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// judge returns one finding for each rule about settings, in the order in which they are shown. It asks the server
// nothing.
func judge(s map[string]string) []driver.Finding {
	return []driver.Finding{judgeVersion(s), judgeCluster(s), judgeWriting(s), judgeTokens(s)}
}

// judgeVersion says which server it is.
func judgeVersion(s map[string]string) driver.Finding {
	f := driver.Finding{
		Check: "version", Level: driver.LevelOK,
		Detail: strings.TrimSpace(s["version"] + " " + s["version_comment"]),
	}
	if !isMariaDB(s) {
		f.Detail += "; the engine is tested with MariaDB only"
	}
	return f
}

// judgeCluster looks at what is left after refusal: a group with a single primary. There the locks exclude, until
// another server becomes the primary.
func judgeCluster(s map[string]string) driver.Finding {
	f := driver.Finding{Check: "cluster", Level: driver.LevelOK, Detail: "none that would share locks"}
	if s["group_replication_group_name"] != "" {
		f.Level, f.Detail = driver.LevelWarn, "a replication group with a single primary: when another server "+
			"becomes the primary all locks are free"
		f.Advice = "let resources check tokens"
	}
	return f
}

// isReadOnly reads one of the settings that make a server read-only. Servers know more values than ON and OFF.
func isReadOnly(value string) bool {
	return value != "" && value != "0" && !strings.EqualFold(value, "OFF")
}

// judgeWriting fails on a server that is read-only: a grant writes its token.
func judgeWriting(s map[string]string) driver.Finding {
	for _, name := range []string{"read_only", "super_read_only", "innodb_read_only"} {
		if isReadOnly(s[name]) {
			return driver.Finding{
				Check: "role", Level: driver.LevelFail, Detail: "the server is set to " + name +
					", so tokens cannot be written",
				Advice: "name the primary",
			}
		}
	}
	return driver.Finding{Check: "role", Level: driver.LevelOK, Detail: "it can be written to"}
}

// judgeTokens says whether a token that was granted survives a crash of the server, and is known to a replica that is
// promoted. Otherwise it is a warning only, because tokens are larger than the clock's last reading all the same,
// unless the clock is behind.
func judgeTokens(s map[string]string) driver.Finding {
	const advice = "set innodb_flush_log_at_trx_commit=1 (and sync_binlog=1 if replicas are promoted)"
	f := driver.Finding{Check: "tokens", Level: driver.LevelOK, Detail: "they are on disk before a grant counts"}
	switch {
	case s["innodb_flush_log_at_trx_commit"] != "1" && s["innodb_flush_log_at_trx_commit"] != "":
		f.Level, f.Advice = driver.LevelWarn, advice
		f.Detail = "a crash may forget the tokens of the last second; they grow all the same, unless the server's " +
			"clock goes back as well"
	case isOn(s["log_bin"]) && s["sync_binlog"] != "1":
		f.Level, f.Advice = driver.LevelWarn, advice
		f.Detail = "a replica that becomes the primary may not know the last tokens; they grow all the same, unless " +
			"its clock is behind by more than the time between"
	}
	return f
}

// judgeRoom compares the connections that this client may open, which are wanted, with the room under the server's
// limit and the user's: the tighter one counts. own is how many sessions the same user has. The server says 0 for a
// user without a limit. It is a warning only, because a wait without a connection asks again and again.
func judgeRoom(wanted int, own uint64, s, used map[string]string) driver.Finding {
	now, most := numberIn(used["Threads_connected"]), numberIn(s["max_connections"])
	whose, setting := "the server", "max_connections"
	if limit := numberIn(s["max_user_connections"]); limit > 0 && limit-min(limit, own) < most-min(most, now) {
		now, most, whose, setting = own, limit, "the user", "max_user_connections, or the user's MAX_USER_CONNECTIONS"
	}
	if most > 0 && now+uint64(wanted) > most {
		return enginekit.Warn("connections",
			"raise "+setting+", or set fewer waits: beyond that, waits ask again and again",
			"%d of %d of %s are in use; this client opens up to %d", now, most, whose, wanted)
	}
	return enginekit.Fine("connections",
		"%d of %d of %s are in use; this client opens up to %d", now, most, whose, wanted)
}

// fullStatements is the part of max_prepared_stmt_count, in percent, from which on it counts as nearly reached.
const fullStatements = 90

// judgeStatements warns if the server is about to prepare no more statements, for all clients together. Then a
// statement is sent as text, which costs a round trip more.
func judgeStatements(s, used map[string]string) driver.Finding {
	now, most := numberIn(used["Prepared_stmt_count"]), numberIn(s["max_prepared_stmt_count"])
	if now >= most*fullStatements/100 {
		return enginekit.Warn("statements", "raise max_prepared_stmt_count, or look for a program that closes none",
			"%d of %d prepared statements are in use: at the limit each lock costs a round trip more", now, most)
	}
	return enginekit.Fine("statements", "%d of %d prepared statements are in use", now, most)
}
