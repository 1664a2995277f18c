package redislock

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/interlock-go/interlock/driver"
)

const (
	// startCheckTime bounds the check at the start, and diagnosisTime that of Diagnose: servers that hang must not hang
	// their clients.
	startCheckTime = 3 * time.Second
	diagnosisTime  = 8 * time.Second
)

// levels, the worst last.
var levels = []driver.Level{driver.LevelOK, driver.LevelWarn, driver.LevelFail}

// Diagnose asks every primary for its state and its settings, and judges what locks depend on: version and role, eviction,
// persistence, replicas, the state of a Cluster, clocks, how pushes arrive, and how long a round trip takes. What fails
// comes first. It changes nothing, and takes some three round trips; with servers that hang it ends after 8 seconds.
//
// Beyond what locking itself needs, it uses INFO, CONFIG GET, TIME and in a Cluster CLUSTER INFO. A check whose command the
// user may not run is a warning that says so.
func (d *Driver) Diagnose(ctx context.Context) []driver.Finding {
	ctx, cancel := context.WithTimeout(ctx, diagnosisTime)
	defer cancel()
	found, err := d.askServers(ctx, true)
	if err != nil {
		return []driver.Finding{unreachable(err)}
	}
	return sorted(d.judgeAll(found))
}

// checkAtStart does with the findings what the options say. It costs two round trips: who is there, and INFO (in a Cluster
// three). What could not be asked is a warning: only a server that is known to be wrong is refused.
func (d *Driver) checkAtStart(ctx context.Context) error {
	if d.opts.Check == CheckNone {
		return nil
	}
	bounded, cancel := context.WithTimeout(ctx, startCheckTime)
	defer cancel()
	found, err := d.askServers(bounded, false)
	if over := ended(ctx); over != nil { // whoever opens the driver has given up
		return over
	}
	var findings []driver.Finding
	if err != nil {
		findings = []driver.Finding{unreachable(err)}
	} else {
		findings = sorted(d.judgeAll(found))
	}
	for _, f := range findings {
		d.logFinding(ctx, f)
	}
	if d.opts.Check == CheckRefuse {
		return refusalOf(findings)
	}
	return nil
}

func (d *Driver) logFinding(ctx context.Context, f driver.Finding) {
	level := slog.LevelWarn
	switch f.Level {
	case driver.LevelOK:
		return
	case driver.LevelFail:
		level = slog.LevelError
	case driver.LevelWarn:
	}
	d.opts.Logger.Log(ctx, level, "redis: "+f.Check+": "+f.Detail, "check", f.Check, "advice", f.Advice)
}

// setupError is the refusal of servers that are not set up for locks.
type setupError struct{ failed []driver.Finding }

// Error names each finding and what to do about it.
func (e *setupError) Error() string {
	var b strings.Builder
	b.WriteString("redis: the server is not set up for locks: ")
	for i, f := range e.failed {
		if i > 0 {
			b.WriteString("; ")
		}
		fmt.Fprintf(&b, "%s: %s", f.Check, f.Detail)
		if f.Advice != "" {
			fmt.Fprintf(&b, " (%s)", f.Advice)
		}
	}
	return b.String()
}

// refusalOf returns an error if a finding fails.
func refusalOf(findings []driver.Finding) error {
	var failed []driver.Finding
	for _, f := range findings {
		if f.Level == driver.LevelFail {
			failed = append(failed, f)
		}
	}
	if len(failed) == 0 {
		return nil
	}
	return &setupError{failed}
}

func unreachable(err error) driver.Finding {
	f := driver.Finding{
		Check: "servers", Level: driver.LevelFail, Detail: fmt.Sprintf("no primary answers: %v", err),
		Advice: "check the address, the network and the server",
	}
	if errors.Is(err, driver.ErrClosed) {
		f.Detail, f.Advice = "the driver is closed", "open it again"
	}
	return f
}

// sorted puts the worst first. Otherwise the order of the checks stays.
func sorted(findings []driver.Finding) []driver.Finding {
	slices.SortStableFunc(findings, func(a, b driver.Finding) int {
		return slices.Index(levels, b.Level) - slices.Index(levels, a.Level)
	})
	return findings
}
