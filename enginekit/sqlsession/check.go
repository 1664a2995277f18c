package sqlsession

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// DiagnosisTime bounds a diagnosis: a server that hangs must not hang its clients.
const DiagnosisTime = 8 * time.Second

// levels, the worst last.
var levels = []driver.Level{driver.LevelOK, driver.LevelWarn, driver.LevelFail}

// SortFindings puts what fails first.
func SortFindings(findings []driver.Finding) {
	slices.SortStableFunc(findings, func(a, b driver.Finding) int {
		return slices.Index(levels, b.Level) - slices.Index(levels, a.Level)
	})
}

// Unreachable is what is found of a server that does not answer.
func Unreachable(err error) driver.Finding {
	return driver.Finding{
		Check: "server", Level: driver.LevelFail, Detail: fmt.Sprintf("it does not answer: %v", err),
		Advice: "check the address, the network and the server",
	}
}

// Report logs the findings of a start that are not good, and returns an error about those that fail if they are to be refused.
func Report(ctx context.Context, log *slog.Logger, engine string, findings []driver.Finding, refuse bool) error {
	SortFindings(findings)
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
		log.Log(ctx, level, engine+": "+f.Check+": "+f.Detail, "check", f.Check, "advice", f.Advice)
	}
	if refuse && len(failed) > 0 {
		return fmt.Errorf("%s: %w: %s", engine, ErrSetUp, strings.Join(failed, "; "))
	}
	return nil
}

// trips is how often the time of a round trip is taken.
const trips = 5

// CheckTrip measures the round trip that ask is. It belongs to a grant as well.
func (d *Core) CheckTrip(ask func() error) driver.Finding {
	f := driver.Finding{Check: "round trip", Level: driver.LevelOK}
	best := time.Duration(0)
	for range trips {
		begin := time.Now()
		if err := ask(); err != nil {
			return Unreachable(err)
		}
		if took := time.Since(begin); best == 0 || took < best {
			best = took
		}
	}
	f.Detail = fmt.Sprintf("%v, with signs of life each %v", best.Round(time.Microsecond), d.config.Signs)
	if best > d.config.Timeout/10 {
		f.Level, f.Advice = driver.LevelWarn, "ask for a longer lease"
	}
	return f
}
