package pglock

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// diagnosisTime bounds Diagnose and the check at the start: a server that hangs must not hang its clients.
const diagnosisTime = 8 * time.Second

// levels, the worst last.
var levels = []driver.Level{driver.LevelOK, driver.LevelWarn, driver.LevelFail}

// Diagnose asks the server for its settings and judges what locks depend on: version, a pooler in between, whether it may be
// written to, whether tokens survive a crash, room for connections and locks, the search for deadlocks, and how long a round
// trip takes. What fails comes first. It changes nothing, and takes some ten round trips.
func (d *Driver) Diagnose(ctx context.Context) []driver.Finding {
	ctx, cancel := context.WithTimeout(ctx, diagnosisTime)
	defer cancel()
	f, err := d.facts(ctx)
	if err != nil {
		return []driver.Finding{unreachable(err)}
	}
	findings := append(d.judge(f), d.checkTrip(ctx))
	sortFindings(findings)
	return findings
}

func unreachable(err error) driver.Finding {
	return driver.Finding{
		Check: "server", Level: driver.LevelFail, Detail: fmt.Sprintf("it does not answer: %v", err),
		Advice: "check the address, the network and the server",
	}
}

func sortFindings(findings []driver.Finding) {
	slices.SortStableFunc(findings, func(a, b driver.Finding) int {
		return slices.Index(levels, b.Level) - slices.Index(levels, a.Level)
	})
}

// checkAtStart does with the findings what the options say. It costs a round trip.
func (d *Driver) checkAtStart(ctx context.Context) error {
	if d.opts.Check == CheckNone {
		return nil
	}
	bounded, cancel := context.WithTimeout(ctx, diagnosisTime)
	defer cancel()
	f, err := d.facts(bounded)
	if err != nil {
		return err
	}
	findings := d.judge(f)
	sortFindings(findings)
	var failed []string
	for _, f := range findings {
		level := slog.LevelWarn
		switch f.Level {
		case driver.LevelOK:
			continue
		case driver.LevelFail:
			level = slog.LevelError
			failed = append(failed, fmt.Sprintf("%s: %s (%s)", f.Check, f.Detail, f.Advice))
		case driver.LevelWarn:
		}
		d.opts.Logger.Log(ctx, level, "postgres: "+f.Check+": "+f.Detail, "check", f.Check, "advice", f.Advice)
	}
	if d.opts.Check == CheckRefuse && len(failed) > 0 {
		return &setupError{strings.Join(failed, "; ")}
	}
	return nil
}

// setupError is the refusal of a server that is not set up for locks.
type setupError struct{ what string }

// Error says what is wrong and what to do about it.
func (e *setupError) Error() string { return "postgres: the server is not set up for locks: " + e.what }

// trips is how often the time of a round trip is taken.
const trips = 5

// checkTrip measures. A grant is one round trip, and a write to the server's disk.
func (d *Driver) checkTrip(ctx context.Context) driver.Finding {
	f := driver.Finding{Check: "round trip", Level: driver.LevelOK}
	best := time.Duration(0)
	for range trips {
		begin := time.Now()
		if _, err := ask(ctx, d, func(c *conn) (rows, error) { return c.exec(stmtPing) }); err != nil {
			return unreachable(err)
		}
		if took := time.Since(begin); best == 0 || took < best {
			best = took
		}
	}
	f.Detail = fmt.Sprintf("%v, with signs of life each %v", best.Round(time.Microsecond), d.opts.Timeout/3)
	if best > d.opts.Timeout/10 {
		f.Level, f.Advice = driver.LevelWarn, "ask for a longer lease"
	}
	return f
}
