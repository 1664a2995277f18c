// The entry of the checks of a deployment, at the start (driver.go) and for Diagnose. check_facts.go asks the servers,
// check_findings.go merges what the other files judge, and enginekit reports it.

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
	// startCheckTime bounds the check at the start, diagnosisTime that of Diagnose: a hanging server must not make its
	// clients hang.
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

// checkAtStart applies Options.Check to the findings. It costs two round trips, one for the list of primaries and one
// for INFO (in a Cluster three). A question without an answer becomes a warning, because only a server that is known to
// be wrong may be refused.
func (d *Driver) checkAtStart(ctx context.Context) error {
	if d.opts.Check == CheckNone {
		return nil
	}
	bounded, cancel := context.WithTimeout(ctx, startCheckTime)
	defer cancel()
	found, err := d.askServers(bounded, false)
	if over := ended(ctx); over != nil { // the caller has given up; its own error is the better one
		return over
	}
	findings := []driver.Finding{unreachable(err)}
	if err == nil {
		findings = d.judgeAll(found)
	}
	return enginekit.Report(ctx, d.opts.Logger, "redis", enginekit.Explained(checksPage, findings), d.opts.Check)
}

// unreachable is the finding for a deployment of which no primary could be asked.
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
