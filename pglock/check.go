// The checks of the server: Diagnose, which the tool's doctor shows, and the check at the start of a driver. Both ask
// for the same facts and judge them by check_rules.go.

package pglock

import (
	"context"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/enginekit"
	"github.com/interlock-go/interlock/enginekit/sqlsession"
)

// checksPage is the chapter in which the checks and their advice are explained.
const checksPage = "docs/doctor.md#findings-on-postgresql"

// Diagnose asks the server for its settings and judges what locks depend on: the version, a pooler in between, whether
// the server may be written to, which table keeps the tokens and what the role may do with it, whether tokens survive a
// crash, room for connections and locks, the search for deadlocks, and how long a round trip takes. Findings that fail
// come first. It changes nothing, takes some ten round trips, and returns after sqlsession.DiagnosisTime at the latest.
// A server that does not answer is one finding and no error.
func (d *Driver) Diagnose(ctx context.Context) []driver.Finding {
	ctx, cancel := context.WithTimeout(ctx, sqlsession.DiagnosisTime)
	defer cancel()
	f, err := d.facts(ctx)
	if err != nil {
		return enginekit.Explained(checksPage, []driver.Finding{sqlsession.Unreachable(err)})
	}
	return enginekit.Explained(checksPage, append(d.judge(f), d.checkTrip(ctx)))
}

// checkAtStart logs the findings or makes them an error, as Options.Check wants. It costs two round trips, or three if
// the role may not set deadlock_timeout as the settings have it. Unlike Diagnose it does not measure the round trip.
func (d *Driver) checkAtStart(ctx context.Context) error {
	if d.opts.Check == CheckNone {
		return nil
	}
	bounded, cancel := context.WithTimeout(ctx, sqlsession.DiagnosisTime)
	defer cancel()
	f, err := d.facts(bounded)
	if err != nil {
		return err
	}
	return enginekit.Report(ctx, d.opts.Logger, "postgres", enginekit.Explained(checksPage, d.judge(f)), d.opts.Check)
}

// checkTrip measures some round trips of an empty statement. A grant takes one of them, and a write to the server's
// disk.
func (d *Driver) checkTrip(ctx context.Context) driver.Finding {
	return d.core.CheckTrip(func() error {
		_, err := ask(ctx, d, func(s *speaker) (rows, error) { return s.exec(stmtPing) })
		return err
	})
}
