package redislock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/enginekit"
)

const (
	// startCheckTime bounds the check at the start, and diagnosisTime that of Diagnose: servers that hang must not hang
	// their clients.
	startCheckTime = 3 * time.Second
	diagnosisTime  = 8 * time.Second
)

// checksPage explains the checks.
const checksPage = "docs/doctor.md#findings-on-redis"

// Diagnose asks every primary for its state and its settings, and judges what locks depend on: version and role,
// eviction, memory, persistence, replicas, the state of a Cluster, rights, clocks, how pushes arrive, and how long a
// round trip takes. It also looks whether some of the first thousand keys are locks of other libraries. What fails
// comes first. It changes nothing, and takes some three round trips, and four for each 200 keys; with servers that
// hang it ends after 8 seconds.
//
// Beyond what locking itself needs, it uses INFO, CONFIG GET, TIME and in a Cluster CLUSTER INFO. A check whose command
// the user may not run is a warning that says so. For the locks of others it uses SCAN, TYPE, PTTL, GETRANGE, HLEN and
// HKEYS, and says nothing of what the user may not read.
func (d *Driver) Diagnose(ctx context.Context) []driver.Finding {
	ctx, cancel := context.WithTimeout(ctx, diagnosisTime)
	defer cancel()
	found, err := d.askServers(ctx, true)
	if err != nil {
		return enginekit.Explained(checksPage, []driver.Finding{unreachable(err)})
	}
	return enginekit.Explained(checksPage, d.judgeAll(found))
}

// checkAtStart does with the findings what the options say. It costs two round trips: who is there, and INFO (in a
// Cluster three). What could not be asked is a warning: only a server that is known to be wrong is refused.
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
	findings := []driver.Finding{unreachable(err)}
	if err == nil {
		findings = d.judgeAll(found)
	}
	return enginekit.Report(ctx, d.opts.Logger, "redis", enginekit.Explained(checksPage, findings), d.opts.Check)
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
