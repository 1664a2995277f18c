package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
	"github.com/spf13/cobra"
)

const doctorLong = `Check an engine: whether it can be reached, takes and gives back a lock, lists locks, answers quickly enough for the
lease, and what the engine's own checks of its server's settings find. For a moment it takes a lock with a name of its own;
nothing else is changed.

Ends with 0 if all is well, 1 with warnings, 2 if locks do not work or a guarantee does not hold.`

func (a *app) doctorCommand() *cobra.Command {
	lease := defaultLease
	cmd := &cobra.Command{
		Use:     "doctor [URL]",
		Short:   "Check an engine's set-up",
		Long:    doctorLong,
		GroupID: "look",
		Args:    atMostOne,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkLeaseFlag(lease); err != nil {
				return err
			}
			if len(args) > 0 {
				if err := (*urlFlag)(&a.url).Set(args[0]); err != nil {
					return usage("%v", err)
				}
			}
			return a.doctor(cmd.Context(), lease)
		},
	}
	cmd.Flags().Var(durationOf(&lease, defaultLease), "lease", "the lease that your locks have")
	return cmd
}

// diagnosis is what doctor prints.
type diagnosis struct {
	SchemaVersion int             `json:"schemaVersion"`
	URL           string          `json:"url"`
	Engine        string          `json:"engine,omitempty"`
	Level         driver.Level    `json:"level"`
	Findings      []findingObject `json:"findings"`
}

type findingObject struct {
	Check  string       `json:"check"`
	Level  driver.Level `json:"level"`
	Detail string       `json:"detail"`
	Advice string       `json:"advice,omitempty"`
}

func (a *app) doctor(ctx context.Context, lease time.Duration) error {
	raw, err := a.engineURL()
	if err != nil {
		return err
	}
	u, err := parseEngineURL(raw)
	if err != nil {
		return err
	}
	d := &diagnosis{SchemaVersion: schemaVersion, URL: u.String(), Level: driver.LevelOK}
	e, err := a.openURL(ctx, raw, &interlock.Options{Lease: lease})
	switch {
	case err == nil:
		a.examine(ctx, e, d, lease)
		_ = e.close()
	case judge(err).exit == exitUnavailable:
		d.add(driver.Finding{
			Check: "reach", Level: driver.LevelFail, Detail: message(err),
			Advice: "check the address, user and password, the network and the server",
		})
	default:
		return err
	}
	if err := a.printDiagnosis(d); err != nil {
		return err
	}
	return silently(map[driver.Level]int{driver.LevelOK: 0, driver.LevelWarn: 1, driver.LevelFail: 2}[d.Level])
}

// add takes a finding in. The diagnosis is as bad as its worst finding.
func (d *diagnosis) add(f driver.Finding) {
	d.Findings = append(d.Findings, findingObject(f))
	order := []driver.Level{driver.LevelOK, driver.LevelWarn, driver.LevelFail}
	if slices.Index(order, f.Level) > slices.Index(order, d.Level) {
		d.Level = f.Level
	}
}

// examine runs the checks that every engine gets, and the engine's own.
func (a *app) examine(ctx context.Context, e *engine, d *diagnosis, lease time.Duration) {
	traits := e.driver.Traits()
	d.Engine = traits.Engine
	d.add(driver.Finding{
		Check: "reach", Level: driver.LevelOK,
		Detail: fmt.Sprintf("%s answers; holds end with their %s", d.URL, traits.Lifetime),
	})
	d.add(a.checkLocking(ctx, e, lease))
	d.add(a.checkListing(ctx, e))
	if traits.Lifetime != driver.Process {
		if traits.Lifetime == driver.Sessions {
			lease = traits.Timeout
		}
		d.add(checkLease(lease))
	}
	if own, ok := e.driver.(driver.Diagnoser); ok {
		ctx, cancel := a.within(ctx)
		defer cancel()
		for _, f := range own.Diagnose(ctx) {
			d.add(f)
		}
	}
}

// rounds is how often doctor locks and unlocks: enough to see an outlier, few enough to be over at once.
const rounds = 5

// checkLocking takes and gives back a lock of its own, and compares the time with the pause between two renewals.
func (a *app) checkLocking(ctx context.Context, e *engine, lease time.Duration) driver.Finding {
	var took []time.Duration
	for range rounds {
		began := time.Now()
		if err := a.lockOnce(ctx, e); err != nil {
			return driver.Finding{
				Check: "lock", Level: driver.LevelFail, Detail: message(err),
				Advice: "check permissions and the server's log",
			}
		}
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	slowest := took[rounds-1]
	f := driver.Finding{
		Check: "lock", Level: driver.LevelOK,
		Detail: fmt.Sprintf("lock and unlock: median %s, slowest %s of %d", fine(took[rounds/2]), fine(slowest),
			rounds),
	}
	switch {
	case e.driver.Traits().Lifetime == driver.Process:
	case slowest >= lease/3:
		f.Level, f.Advice = driver.LevelFail, fmt.Sprintf("slower than the pause between renewals (%v): a lease of "+
			"%v cannot be kept; lengthen it", lease/3, lease)
	case slowest >= lease/30:
		f.Level, f.Advice = driver.LevelWarn, fmt.Sprintf("more than a tenth of the pause between renewals (%v): "+
			"consider a longer lease", lease/3)
	}
	return f
}

// lockOnce waits if another doctor is at work: always the same name, because some engines keep something of every name.
func (a *app) lockOnce(ctx context.Context, e *engine) error {
	ctx, cancel := a.within(ctx)
	defer cancel()
	lease, err := e.client.Lock(ctx, "interlock-doctor")
	if err != nil {
		return err
	}
	return lease.Unlock(ctx)
}

func (a *app) checkListing(ctx context.Context, e *engine) driver.Finding {
	began := time.Now()
	locks, err := a.listLocks(ctx, e, "")
	if err != nil {
		return driver.Finding{
			Check: "list", Level: driver.LevelWarn, Detail: message(err),
			Advice: "ls, get, watch and conflict messages will know less",
		}
	}
	return driver.Finding{
		Check: "list", Level: driver.LevelOK,
		Detail: fmt.Sprintf("locks in use: %d, listed in %s", len(locks), fine(time.Since(began))),
	}
}

// checkLease is the arithmetic of run with its default grace.
func checkLease(lease time.Duration) driver.Finding {
	b := newBudget(lease, defaultGrace(lease))
	f := driver.Finding{
		Check: "lease", Level: driver.LevelOK,
		Detail: fmt.Sprintf("%v: renewed every %v; without renewals a job gets TERM after %v, KILL after %v, and the "+
			"lock is free after %v",
			lease, ms(b.renewal), ms(lease-b.drift-b.margin-b.grace), ms(lease-b.drift-b.margin), lease),
	}
	if err := b.check(); err != nil {
		f.Level, f.Detail, f.Advice = driver.LevelFail, err.Error(), "lengthen the lease"
	}
	return f
}

// fine shows short times with enough digits.
func fine(d time.Duration) time.Duration {
	if d < time.Millisecond {
		return d.Round(time.Microsecond)
	}
	return d.Round(10 * time.Microsecond)
}

func (a *app) printDiagnosis(d *diagnosis) error {
	if a.output == asJSON {
		return a.printJSON(d)
	}
	w := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	for _, f := range d.Findings {
		fmt.Fprintf(w, "%s\t%s\t%s\n", strings.ToUpper(string(f.Level)), f.Check, f.Detail)
		if f.Advice != "" {
			fmt.Fprintf(w, "\t\t-> %s\n", f.Advice)
		}
	}
	return w.Flush()
}
