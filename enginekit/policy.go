package enginekit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/interlock-go/interlock/driver"
)

// CheckPolicy says what an engine's New does with a server that is not set up for locks. Engines have it as a type of
// their own name, and say there what they refuse whatever it says.
type CheckPolicy uint8

const (
	// CheckWarn logs findings. It is the zero value.
	CheckWarn CheckPolicy = iota
	// CheckRefuse logs them too, and makes New fail if a finding says that locks would not keep their guarantees.
	CheckRefuse
	// CheckNone asks the server nothing.
	CheckNone
)

var policies = map[string]CheckPolicy{"warn": CheckWarn, "refuse": CheckRefuse, "none": CheckNone}

// ParseCheckPolicy reads the value of the query key check of a URL: warn, refuse or none. The error for others begins
// with engine, and says which there are.
func ParseCheckPolicy(engine, value string) (CheckPolicy, error) {
	p, known := policies[value]
	if !known {
		return p, errors.New(engine + ": check is warn, refuse or none")
	}
	return p, nil
}

// ErrNotSetUp is the refusal of a server that is not set up for locks; see [Report].
var ErrNotSetUp = errors.New("the server is not set up for locks")

// Report does with the findings of a start-up check what the policy says. It logs those that are not fine, the most
// serious first: what fails as an error and the others as warnings, each with attributes check, advice and page, if
// there is one, and a message that begins with engine.
//
// Under [CheckRefuse] it returns an error if a finding fails. That error names each of these with its advice, and
// matches [ErrNotSetUp]. Otherwise it returns nil. Under [CheckNone] it does nothing; an engine does not even ask then.
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
