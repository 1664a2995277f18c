// Package run tortures one engine: it starts the engine's server, client processes with a proxy for each, the register that
// the locks protect, and a nemesis that does faults to all of them; and leaves a folder with what everybody recorded.
package run

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/drivertest/servers"
	"github.com/interlock-go/interlock/torture/history"
	"github.com/interlock-go/interlock/torture/register"
	"github.com/interlock-go/interlock/torture/target"
	"github.com/interlock-go/interlock/torture/worker"
)

// AboutFile is the name of the file that says what a folder is of.
const AboutFile = "run.json"

// Config says what to do.
type Config struct {
	Target     *target.Target `json:"-"`
	Engine     string         // the name of Target
	Faults     []target.Fault
	Processes  int
	Goroutines int // of each
	Names      int // of locks
	Duration   time.Duration
	Increments int // if not 0, it ends sooner, when so many updates were made behind the fence
	Hold       time.Duration
	Cancel     float64
	Seed       uint64
	Long       bool     // instead: each goroutine holds a lock of its own for 20 leases, and the server is far away
	Dir        string   `json:"-"`
	Worker     []string `json:"-"` // the command that makes this program a worker
}

// About is what AboutFile holds: the configuration, and what the checks need to know of the run.
type About struct {
	Config
	Lease    time.Duration
	Heal     time.Duration
	Begin    history.Instant
	Quiet    history.Instant // when the nemesis had ended, and the calm began
	End      history.Instant
	Problems []string // processes that did not end in order
	Residue  []string // locks that were held or waited for when everybody had left
}

// run is a run under way.
type run struct {
	*Config
	lease    time.Duration
	stage    *servers.Stage
	engine   *target.Instance
	register *register.Server
	names    []string
	crew     []*mate
}

// longHold is for how many leases a long hold lasts, and far which part of a lease each way to the server and back takes then.
const (
	longHold = 20
	far      = 0.15
)

// Do does it. Its error says that the run could not be made, not that a lock is broken: see package check for that.
func Do(ctx context.Context, c *Config) (about *About, err error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	r := &run{Config: c, lease: c.Target.Lease}
	if c.Long {
		c.Names, c.Duration = c.Processes*c.Goroutines, longHold*r.lease+r.lease
	}
	for i := range c.Names {
		r.names = append(r.names, fmt.Sprintf("lock-%d", i))
	}
	if r.stage, err = servers.NewStage(); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.stage.Close()) }()
	if r.register, err = register.Listen(ctx, c.Dir, c.Seed); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.register.Close()) }()
	if err := r.setUp(); err != nil {
		return nil, errors.Join(err, r.endAll())
	}
	a := &About{Config: *c, Lease: r.lease, Heal: c.Target.Heal, Begin: history.Now()}
	a.Engine = c.Target.Name
	if err := r.torture(ctx, a); err != nil {
		return nil, err
	}
	text, err := json.MarshalIndent(a, "", "  ")
	if err != nil {
		return nil, err
	}
	return a, os.WriteFile(filepath.Join(c.Dir, AboutFile), append(text, '\n'), 0o600)
}

func (c *Config) validate() error {
	switch {
	case c.Target == nil:
		return errors.New("no engine was chosen")
	case c.Processes < 1 || c.Goroutines < 1 || c.Names < 1:
		return errors.New("a run needs at least one process, one goroutine and one name")
	case c.Long && len(c.Faults) > 0 && !slices.Equal(c.Faults, []target.Fault{target.None}):
		return errors.New("long holds are for runs without faults")
	case c.Duration <= 0 && !c.Long:
		return fmt.Errorf("the duration %v is not positive", c.Duration)
	case len(c.Faults) == 0:
		c.Faults = []target.Fault{target.None}
	}
	for _, f := range c.Faults {
		if !slices.Contains(target.All(), f) {
			return fmt.Errorf("there is no fault %q: choose from %v", f, target.All())
		}
		if !c.Target.Can(f) {
			return fmt.Errorf("the fault %s cannot be done to %s: choose from %v", f, c.Target.Name, c.Target.Faults)
		}
	}
	return nil
}

// setUp starts the server, the proxies and the processes.
func (r *run) setUp() error {
	err := r.stage.Play(func(t testing.TB) { r.engine = r.Target.Start(t) })
	if err != nil {
		return err
	}
	for i := range r.Processes {
		m := &mate{self: r.Worker, job: worker.Job{
			Register: r.register.Addr(), Dir: r.Dir, Proc: i, Seed: r.Seed, Goroutines: r.Goroutines, Names: r.names,
			Lease: r.lease, Hold: r.Hold, Patience: 4*r.lease + r.Target.Heal, Cancel: r.Cancel,
			Shares: r.Target.Shares(), Mixed: r.Increments == 0, Long: r.long(),
		}}
		addr := r.engine.Addr
		if addr != "" {
			if err := r.stage.Play(func(t testing.TB) { m.proxy = servers.NewProxy(t, addr) }); err != nil {
				return err
			}
			addr = m.proxy.Addr()
		}
		m.job.URL = r.engine.URL(addr)
		if err := m.start(); err != nil {
			return err
		}
		r.crew = append(r.crew, m)
	}
	return nil
}

// torture lets the nemesis rage, then gives everybody the time to recover, and ends the processes.
func (r *run) torture(ctx context.Context, a *About) error {
	n, err := newNemesis(r)
	if err != nil {
		return errors.Join(err, r.endAll())
	}
	if err := r.warmUp(ctx); err != nil {
		return errors.Join(err, r.endAll())
	}
	if err := r.goAway(ctx); err != nil {
		return errors.Join(err, r.endAll())
	}
	a.Begin = history.Now()
	raging, cancel := context.WithTimeout(ctx, r.Duration)
	if r.Increments > 0 {
		r.register.Await(r.Increments, cancel)
	}
	err = n.rage(raging)
	cancel()
	a.Quiet = history.Now()
	if err == nil && !r.Long { // then nobody waits
		everybody := r.Hold * time.Duration(r.Processes*r.Goroutines) // one after the other
		sleep(ctx, r.Target.Heal+2*r.lease+everybody)
	}
	a.End = history.Now()
	for _, m := range r.crew {
		if e := m.end(r.Target.Heal + 10*time.Second); e != nil {
			a.Problems = append(a.Problems, e.Error())
		}
	}
	if err == nil {
		a.Residue, err = r.residue(ctx)
	}
	return errors.Join(err, ctx.Err())
}

// warmUp returns when somebody has had a lock: a deployment that never worked cannot be judged by how it fails.
func (r *run) warmUp(ctx context.Context) error {
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); {
		for _, name := range r.names {
			if _, ok := r.register.Latest(name); ok {
				return nil
			}
		}
		sleep(ctx, 20*time.Millisecond)
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return errors.New("without any fault nobody got a lock within 30 s; see the files *.stderr of the run")
}

func (r *run) long() time.Duration {
	if !r.Long {
		return 0
	}
	return longHold * r.lease
}

// goAway puts the server far away if holds are to be long: when all have begun, because to connect takes many round trips.
func (r *run) goAway(ctx context.Context) error {
	if !r.Long {
		return nil
	}
	for _, name := range r.names {
		for end := time.Now().Add(30 * time.Second); ; sleep(ctx, 20*time.Millisecond) {
			if _, ok := r.register.Latest(name); ok {
				break
			}
			if time.Now().After(end) || ctx.Err() != nil {
				return fmt.Errorf("%s was not taken within 30 s; see the files *.stderr of the run", name)
			}
		}
	}
	for _, m := range r.crew {
		if m.proxy == nil {
			return fmt.Errorf("there is no way to %s on which anything could be slow", r.Target.Name)
		}
		m.proxy.Delay(servers.BothWays, time.Duration(far*float64(r.lease)))
	}
	return nil
}

// heartbeat is for how long the place of a waiter counts that is heard of no more, and a bit.
const heartbeat = 6 * time.Second

// residue lists what is left when all that ends by itself has ended.
func (r *run) residue(ctx context.Context) ([]string, error) {
	sleep(ctx, max(r.lease+r.lease/2, heartbeat))
	locks, err := interlock.Open(ctx, r.engine.URL(r.engine.Addr), &interlock.Options{Lease: r.lease, ClientName: "coordinator"})
	if err != nil {
		return nil, err
	}
	var left []string
	for info, err := range locks.Locks(ctx, "") {
		if err != nil {
			return nil, errors.Join(err, locks.Close())
		}
		left = append(left, fmt.Sprintf("%s: %d holders, %d waiters", info.Name, len(info.Holders), len(info.Waiters)))
	}
	return left, locks.Close()
}

func (r *run) endAll() error {
	var errs []error
	for _, m := range r.crew {
		errs = append(errs, m.end(time.Second))
	}
	return errors.Join(errs...)
}
