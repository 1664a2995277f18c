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

// Warn is the finding of something that locks can live with, and should not have to. advice says what to do about it;
// detail and args are as of [fmt.Sprintf].
func Warn(check, advice, detail string, args ...any) driver.Finding {
	return driver.Finding{Check: check, Level: driver.LevelWarn, Detail: fmt.Sprintf(detail, args...), Advice: advice}
}

// Fail is the finding of something with which locks do not keep their guarantees, or cannot be taken. advice says what
// to do about it; detail and args are as of [fmt.Sprintf].
func Fail(check, advice, detail string, args ...any) driver.Finding {
	return driver.Finding{Check: check, Level: driver.LevelFail, Detail: fmt.Sprintf(detail, args...), Advice: advice}
}

// Explained is what Diagnose returns of findings: page becomes the [driver.Finding.Page] of those that have none, and
// the most serious come first. The findings are changed in place.
func Explained(page string, findings []driver.Finding) []driver.Finding {
	for i := range findings {
		if findings[i].Page == "" {
			findings[i].Page = page
		}
	}
	SortFindings(findings)
	return findings
}

// levels, the worst last.
var levels = []driver.Level{driver.LevelOK, driver.LevelWarn, driver.LevelFail}

// CompareLevels is negative if a is less serious than b, positive if it is more serious, and 0 if they are the same.
func CompareLevels(a, b driver.Level) int { return slices.Index(levels, a) - slices.Index(levels, b) }

// SortFindings puts the most serious first, in place. Of those of one level the order stays, which is that of the
// checks.
func SortFindings(findings []driver.Finding) {
	slices.SortStableFunc(findings, func(a, b driver.Finding) int { return CompareLevels(b.Level, a.Level) })
}
