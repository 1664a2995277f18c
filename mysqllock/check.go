// The checks of the server: Diagnose, which the tool's doctor shows, and the check at the start of a driver.
// check_rules.go judges what is asked for here.

package mysqllock

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/enginekit"
	"github.com/interlock-go/interlock/enginekit/sqlsession"
)

// checksPage is the chapter in which the checks and their advice are explained.
const checksPage = "docs/doctor.md#findings-on-mysql-and-mariadb"

// Diagnose asks the server for its settings and judges what locks depend on: version, cluster, whether it may be
// written to, what the user may do with the tables, whether tokens survive a crash, room for connections and prepared
// statements, whose waits can be listed, and how long a round trip takes. Findings that fail come first. It changes
// nothing, takes some ten round trips, and returns after sqlsession.DiagnosisTime at the latest. A server that does not
// answer is one finding and no error.
func (d *Driver) Diagnose(ctx context.Context) []driver.Finding {
	ctx, cancel := context.WithTimeout(ctx, sqlsession.DiagnosisTime)
	defer cancel()
	rows, err := d.ask(ctx, settingsQuery())
	if err != nil {
		return enginekit.Explained(checksPage, []driver.Finding{sqlsession.Unreachable(err)})
	}
	settings := settingsOf(rows)
	findings := judge(settings)
	findings = append(findings, d.checkRights(ctx))
	findings = append(findings, d.checkUsage(ctx, settings)...)
	findings = append(findings, d.checkProcess(ctx), d.checkTrip(ctx))
	return enginekit.Explained(checksPage, findings)
}

// checkAtStart logs the findings or makes them an error, as Options.Check wants. It costs one round trip, for the
// rights: the first session has asked for the settings when it was set up.
func (d *Driver) checkAtStart(ctx context.Context) error {
	if d.opts.Check == CheckNone {
		return nil
	}
	d.mu.Lock()
	settings := d.settings
	d.mu.Unlock()
	bounded, cancel := context.WithTimeout(ctx, sqlsession.DiagnosisTime)
	defer cancel()
	findings := enginekit.Explained(checksPage, append(judge(settings), d.checkRights(bounded)))
	return enginekit.Report(ctx, d.opts.Logger, "mysql", findings, d.opts.Check)
}

// rightsText has the server plan statements that need each of the rights, and run none of them: EXPLAIN checks rights.
// The answer is an error with the first right that is missing. What the user may do cannot be read from a list, because
// rights come from roles, databases and patterns.
func (d *Driver) rightsText() string {
	var all []string
	for _, table := range []string{d.opts.Table, d.opts.Table + "_breaks"} {
		all = append(all, "EXPLAIN INSERT INTO "+table+" SELECT * FROM "+table+" WHERE FALSE",
			"EXPLAIN UPDATE "+table+" SET token = token WHERE FALSE", "EXPLAIN DELETE FROM "+table+" WHERE FALSE")
	}
	return strings.Join(all, "; ")
}

// checkRights looks whether the user may do with the tables what locking needs. Another error than that of a missing
// right is a warning: it says nothing about the rights.
func (d *Driver) checkRights(ctx context.Context) driver.Finding {
	f := driver.Finding{
		Check: "rights", Level: driver.LevelOK,
		Detail: "the user may do with the tables what locking needs",
	}
	if d.opts.ReadOnly {
		return d.checkReading(ctx)
	}
	_, err := d.ask(ctx, d.rightsText())
	switch numberOf(err) {
	case errNoRight:
		f.Level, f.Detail = driver.LevelFail, err.Error()
		f.Advice = fmt.Sprintf("GRANT SELECT, INSERT, UPDATE, DELETE ON %s, and ON %[1]s_breaks, TO the user",
			d.opts.Table)
	default:
		if err != nil {
			f.Level, f.Detail, f.Advice = driver.LevelWarn, "they cannot be found out: "+
				err.Error(), "see the other findings"
		}
	}
	return f
}

// checkReading is checkRights of a driver that only looks: it needs to read the table of tokens, and makes none.
func (d *Driver) checkReading(ctx context.Context) driver.Finding {
	_, err := d.ask(ctx, "SELECT 1 FROM "+d.opts.Table+" LIMIT 0")
	switch {
	case err == nil:
		return enginekit.Fine("rights", "the user may read what looking needs")
	case d.isUnused(err):
		return sqlsession.MissingTables(d.opts.Table)
	case numberOf(err) == errNoRight:
		return enginekit.Fail("rights", "GRANT SELECT ON "+d.opts.Table+" TO the user", "%v", err)
	}
	return enginekit.Warn("rights", "see the other findings", "they cannot be found out: %v", err)
}

// settingsQuery asks for the settings of settingNames. Those that the server does not know are missing in the answer,
// so one text serves all servers.
func settingsQuery() string {
	return "SHOW VARIABLES WHERE Variable_name IN ('" + strings.Join(settingNames, "', '") + "')"
}

// settingsOf makes a map of rows of name and value, as SHOW VARIABLES and SHOW STATUS return them.
func settingsOf(rows []row) map[string]string {
	settings := make(map[string]string, len(rows))
	for _, r := range rows {
		settings[r.text(0)] = r.text(1)
	}
	return settings
}

// checkTrip measures some round trips of an empty statement. A grant takes one of them, and a commit.
func (d *Driver) checkTrip(ctx context.Context) driver.Finding {
	return d.core.CheckTrip(func() error {
		_, err := d.ask(ctx, "SELECT 1")
		return err
	})
}

// checkUsage looks for room for this client's connections and prepared statements. Sessions of the same user are always
// listed, whatever the user's rights.
func (d *Driver) checkUsage(ctx context.Context, settings map[string]string) []driver.Finding {
	own, errOwn := d.ask(ctx,
		"SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE USER = SUBSTRING_INDEX(USER(), '@', 1)")
	rows, err := d.ask(ctx, "SHOW GLOBAL STATUS WHERE Variable_name IN ('Threads_connected', 'Prepared_stmt_count')")
	if err = errors.Join(errOwn, err); err != nil || len(own) != 1 {
		return []driver.Finding{enginekit.Warn("connections", "count them by hand",
			"the server does not tell how many there are: %v", err)}
	}
	used := settingsOf(rows)
	return []driver.Finding{
		judgeRoom(d.opts.Shared+d.opts.Waits, own[0].uint(0), settings, used), judgeStatements(settings, used),
	}
}

// checkProcess says whose waits can be listed. Without PROCESS on all databases the server lists the sessions of the
// same user alone. It is never worse than OK, because only operators need the list.
func (d *Driver) checkProcess(ctx context.Context) driver.Finding {
	f := driver.Finding{Check: "waiters", Level: driver.LevelOK, Detail: "the waits of all users can be listed"}
	rows, err := d.ask(ctx, "SHOW GRANTS")
	for _, r := range rows {
		if text := r.text(0); strings.Contains(text, " ON *.*") &&
			(strings.Contains(text, "PROCESS") || strings.Contains(text, "ALL PRIVILEGES")) {
			return f
		}
	}
	f.Detail = "only the waits of clients with the same user can be listed"
	if err != nil {
		f.Detail = fmt.Sprintf("the user's rights cannot be read: %v", err)
	}
	f.Advice = "grant PROCESS to see all"
	return f
}
