package pglock

import (
	"context"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/enginekit"
	"github.com/interlock-go/interlock/enginekit/sqlsession"
)

// checksPage explains the checks.
const checksPage = "docs/doctor.md#findings-on-postgresql"

// Diagnose asks the server for its settings and judges what locks depend on: version, a pooler in between, whether it
// may be written to, which table keeps the tokens and what the role may do with it, whether tokens survive a crash,
// room for connections and locks, the search for deadlocks, and how long a round trip takes. What fails comes first. It
// changes nothing, and takes some ten round trips.
func (d *Driver) Diagnose(ctx context.Context) []driver.Finding {
	ctx, cancel := context.WithTimeout(ctx, sqlsession.DiagnosisTime)
	defer cancel()
	f, err := d.facts(ctx)
	if err != nil {
		return enginekit.Explained(checksPage, []driver.Finding{sqlsession.Unreachable(err)})
	}
	return enginekit.Explained(checksPage, append(d.judge(f), d.checkTrip(ctx)))
}

// checkAtStart does with the findings what the options say. It costs a round trip.
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

// checkTrip measures. A grant is one round trip, and a write to the server's disk.
func (d *Driver) checkTrip(ctx context.Context) driver.Finding {
	return d.core.CheckTrip(func() error {
		_, err := ask(ctx, d, func(s *speaker) (rows, error) { return s.exec(stmtPing) })
		return err
	})
}
