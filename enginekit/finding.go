// Findings of a diagnosis: how an engine's checks make them and in which order they are shown. policy.go decides what
// the start-up check does with them.

package enginekit

import (
	"fmt"
	"slices"

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
