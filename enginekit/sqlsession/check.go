// Findings that all engines on sessions share. Their own checks and Diagnose use these.

package sqlsession

import (
	"fmt"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// DiagnosisTime is how long an engine's Diagnose and its start-up check may take: a hanging server must not make its
// clients hang.
const DiagnosisTime = 8 * time.Second

// Unreachable returns the finding for a server that does not answer, with the reason.
func Unreachable(err error) driver.Finding {
	return driver.Finding{
		Check: "server", Level: driver.LevelFail, Detail: fmt.Sprintf("it does not answer: %v", err),
		Advice: "check the address, the network and the server",
	}
}

// MissingTables returns the finding of a driver that only looks and makes no tables, where the table of tokens is not
// there. Before the first lock that is well, and otherwise the name or the database is another than that of the others.
func MissingTables(table string) driver.Finding {
	return driver.Finding{
		Check: "tables", Level: driver.LevelWarn,
		Detail: fmt.Sprintf("there is no table %s, so there are no locks", table),
		Advice: "the first program that locks makes the tables, if its user may; before that see whether the " +
			"database " +
			"and the table's name are right",
	}
}

// trips is how often the time of a round trip is taken.
const trips = 5

// CheckTrip calls ask, which makes one round trip, five times, and returns a finding with the shortest time. It is a
// warning if that is more than a tenth of Config.Timeout: signs of life could come too late. It is [Unreachable] if ask
// fails.
func (d *Core) CheckTrip(ask func() error) driver.Finding {
	f := driver.Finding{Check: "round trip", Level: driver.LevelOK}
	// The shortest of several, because the others measure what the machines did beside it.
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
