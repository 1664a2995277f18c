// Findings of a diagnosis: how an engine's checks make them, in which order they are shown, and what the start-up check
// does with them.

package enginekit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/interlock-go/interlock/driver"
)

// Fine is the finding of a check that found nothing wrong. detail and args are as of [fmt.Sprintf].
func Fine(check, detail string, args ...any) driver.Finding {
	return driver.Finding{Check: check, Level: driver.LevelOK, Detail: fmt.Sprintf(detail, args...)}
}

// Warn is the finding of something that locks can live with but should not have to. advice says what to do about it;
// detail and args are as of [fmt.Sprintf].
func Warn(check, advice, detail string, args ...any) driver.Finding {
	return driver.Finding{Check: check, Level: driver.LevelWarn, Detail: fmt.Sprintf(detail, args...), Advice: advice}
}

// Fail is the finding of something with which locks do not keep their guarantees, or cannot be taken. advice says what
// to do about it; detail and args are as of [fmt.Sprintf].
func Fail(check, advice, detail string, args ...any) driver.Finding {
	return driver.Finding{Check: check, Level: driver.LevelFail, Detail: fmt.Sprintf(detail, args...), Advice: advice}
}

// Explained returns the findings in the form that Diagnose promises: page becomes the [driver.Finding.Page] of those
// that have none, and the most serious come first. It changes the slice and its elements in place.
func Explained(page string, findings []driver.Finding) []driver.Finding {
	for i := range findings {
		if findings[i].Page == "" {
			findings[i].Page = page
		}
	}
	SortFindings(findings)
	return findings
}

// levels in the order of their weight, the worst last. A level that is not in it, which only a later driver could have,
// counts as less than all of them.
var levels = []driver.Level{driver.LevelOK, driver.LevelWarn, driver.LevelFail}

// CompareLevels is negative if a is less serious than b, positive if it is more serious, and 0 if they are the same.
func CompareLevels(a, b driver.Level) int { return slices.Index(levels, a) - slices.Index(levels, b) }

// SortFindings puts the most serious first, in place. Within a level the order stays as it is, which is that of the
// checks.
func SortFindings(findings []driver.Finding) {
	slices.SortStableFunc(findings, func(a, b driver.Finding) int { return CompareLevels(b.Level, a.Level) })
}

// What an engine's New does with the findings of its start-up check: log them, refuse the server, or not ask at all.

// CheckPolicy says what an engine's New does with a server that is not set up for locks. Engines have it under a name
// of their own, and say there what they refuse whatever the policy is.
type CheckPolicy uint8

const (
	// CheckWarn logs findings. It is the zero value.
	CheckWarn CheckPolicy = iota
	// CheckRefuse logs them too, and makes New fail if a finding says that locks would not keep their guarantees.
	CheckRefuse
	// CheckNone asks the server nothing.
	CheckNone
)

// policies by their names in URLs.
var policies = map[string]CheckPolicy{"warn": CheckWarn, "refuse": CheckRefuse, "none": CheckNone}

// ParseCheckPolicy reads the value of the query key "check" of a URL: warn, refuse or none. The error for other values
// begins with engine, and names the three.
func ParseCheckPolicy(engine, value string) (CheckPolicy, error) {
	p, known := policies[value]
	if !known {
		return p, errors.New(engine + ": check is warn, refuse or none")
	}
	return p, nil
}

// ErrNotSetUp matches the error by which [Report] refuses a server that is not set up for locks.
var ErrNotSetUp = errors.New("the server is not set up for locks")

// Report applies the policy to the findings of a start-up check. It logs those that are not fine, the most serious
// first: failures as errors and the others as warnings. Each has the attributes check, advice and, if there is one,
// page, and a message that begins with engine.
//
// Under [CheckRefuse] it returns an error if a finding fails. That error names each failure with its advice, and
// matches [ErrNotSetUp]. Otherwise it returns nil. Under [CheckNone] it does nothing; the engine should not even ask
// then.
//
// The findings are sorted in place.
func Report(ctx context.Context, log *slog.Logger, engine string, findings []driver.Finding, policy CheckPolicy) error {
	if policy == CheckNone {
		return nil
	}
	SortFindings(findings)
	var failed []string
	for _, f := range findings {
		level := slog.LevelWarn
		switch f.Level {
		case driver.LevelOK:
			continue
		case driver.LevelFail:
			level = slog.LevelError
			failed = append(failed, sentence(f))
		case driver.LevelWarn:
		}
		attrs := []any{"check", f.Check, "advice", f.Advice}
		if f.Page != "" {
			attrs = append(attrs, "page", f.Page)
		}
		log.Log(ctx, level, engine+": "+f.Check+": "+f.Detail, attrs...)
	}
	if policy == CheckRefuse && len(failed) > 0 {
		return fmt.Errorf("%s: %w: %s", engine, ErrNotSetUp, strings.Join(failed, "; "))
	}
	return nil
}

// sentence is a finding in one line.
func sentence(f driver.Finding) string {
	s := f.Check + ": " + f.Detail
	if f.Advice != "" {
		s += " (" + f.Advice + ")"
	}
	return s
}
