package sqlsession

import (
	"fmt"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// DiagnosisTime bounds a diagnosis: a server that hangs must not hang its clients.
const DiagnosisTime = 8 * time.Second

// Unreachable is what is found of a server that does not answer.
func Unreachable(err error) driver.Finding {
	return driver.Finding{
		Check: "server", Level: driver.LevelFail, Detail: fmt.Sprintf("it does not answer: %v", err),
		Advice: "check the address, the network and the server",
	}
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
