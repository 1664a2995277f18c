// Package run tortures one engine: it starts the engine's server, client processes with a proxy for each, the
// register that the locks protect, and a nemesis that does faults to all of them; and leaves a folder with
// what everybody recorded.
package run

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/enginekit"
	"github.com/interlock-go/interlock/internal/servers"
	"github.com/interlock-go/interlock/torture/history"
	"github.com/interlock-go/interlock/torture/register"
	"github.com/interlock-go/interlock/torture/target"
	"github.com/interlock-go/interlock/torture/worker"
)

// AboutFile is the name of the file that says what a folder is of.
const AboutFile = "run.json"

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
	Server   string   // which product, and which version; empty if there is none
	Commit   string   // of interlock
	Ordered  bool     // the engine serves first come, first served
	Sessions bool     // its holds are trusted while a session is

	Clients int `json:",omitempty"` // of each process; 0 is one

	Raced bool `json:",omitempty"` // under the race detector, which makes the processes several times slower
}

// run is a run under way.
type run struct {
	*Config
	lease    time.Duration
	stage    *servers.Stage
	engine   *target.Instance
	can      *target.Abilities
	register *register.Server
	names    []string
	crew     []*process
}

// Do does it. Its error says that the run could not be made, not that a lock is broken: see package check for that.
func Do(ctx context.Context, c *Config) (about *About, err error) {
	if err := cmp.Or(possible(), c.validate()); err != nil {
		return nil, err
	}
	r := &run{Config: c, lease: c.LeaseTime()}
	if c.Long {
		c.Names, c.Duration = c.Processes*c.Goroutines, longHold*r.lease+r.lease
	}
	for i := range c.Names {
		r.names = append(r.names, fmt.Sprintf("lock-%d", i))
	}
	let, err := keepCode()
	if err != nil {
		return nil, err
	}
	defer let()
	if r.stage, err = servers.NewStage(); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.stage.Close()) }()
	if err := r.stage.Play(func(t testing.TB) { r.engine = r.Target.Start(t, r.toPrepare()) }); err != nil {
		return nil, err
	}
	host := "127.0.0.1"
	if r.engine.Network != nil {
		host = r.engine.Network.Host()
	}
	if r.register, err = register.Listen(ctx, c.Dir, host, c.Seed); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.register.Close()) }()
	if err := r.setUp(ctx); err != nil {
		return nil, errors.Join(err, r.endAll())
	}
	a := &About{Config: *c, Lease: r.lease, Heal: c.Target.Heal, Begin: history.Now(), Raced: raced}
	a.Engine, a.Commit, a.Ordered, a.Sessions = c.Target.Name, Commit(ctx), r.can.Ordered, r.can.Sessions
	a.Clients = r.clients()
	if a.Server, err = r.engine.Version(ctx); err != nil {
		return nil, errors.Join(err, r.endAll())
	}
	if err := r.torture(ctx, a); err != nil {
		return nil, err
	}
	text, err := json.MarshalIndent(a, "", "  ")
	if err != nil {
		return nil, err
	}
	return a, os.WriteFile(filepath.Join(c.Dir, AboutFile), append(text, '\n'), 0o600)
}

// clients is how many a process has: several if the engine is inside of it.
func (r *run) clients() int {
	if r.Target.Inside {
		return min(4, r.Goroutines)
	}
	return 1
}

// retain is how long bursts have their lock retained: for longer than anybody is kept waiting by what dies or
// stands still, so that who waits for the end of a retention, because a recall was lost, is noticed by K7.
func (r *run) retain() time.Duration {
	if r.Workload != Retain {
		return 0
	}
	return 4 * r.lease
}

// setUp starts the proxies and the processes.
func (r *run) setUp(ctx context.Context) (err error) {
	if r.can, err = target.Ask(ctx, r.engine.Direct(), r.lease); err != nil {
		return err
	}
	if r.Workload == Retain && !r.can.Recalls {
		return fmt.Errorf("engine %s does not tell a holder that another process waits, which Target.Recalls says",
			r.Target.Name)
	}
	for i := range r.Processes {
		p := &process{self: r.Worker, job: worker.Job{
			Register: r.register.Addr(), Dir: r.Dir, Proc: i, Seed: r.Seed, Goroutines: r.Goroutines, Names: r.names,
			Lease: r.lease, Hold: r.Hold, Patience: worker.Patience(r.lease, r.Target.Heal, r.OneByOne()),
			Cancel: r.Cancel, Shares: r.can.Shares, Mixed: r.Increments == 0, Long: r.long(), Clients: r.clients(),
			Retain: r.retain(), Held: r.Workload == Held,
			Named: r.can.Named, Ends: slices.Contains(r.Faults, target.LoseEnds),
		}}
		if network := r.engine.Network; network != nil {
			if err := r.stage.Play(func(t testing.TB) { p.member = network.Join(t) }); err != nil {
				return err
			}
			r.engine.Clients = append(r.engine.Clients, p.member)
		}
		if err := r.stage.Play(func(t testing.TB) { r.link(t, p) }); err != nil {
			return err
		}
		if err := p.start(); err != nil {
			return err
		}
		r.crew = append(r.crew, p)
	}
	r.engine.Holder, r.engine.Steer = r.holder, r.steer
	return nil
}

// holder is the client that touched the only name last, and since when it has.
func (r *run) holder() (*servers.Member, time.Time) {
	proc, known := r.register.Latest(r.names[0])
	if !known {
		return nil, time.Time{}
	}
	return r.crew[proc].member, r.register.Since(r.names[0])
}

// steering bounds the time in which a client that was steered comes to its server.
const steering = time.Second

// steer has the client's connections to all servers but one refused, and returns when it has one to that. If it has
// none in time the error is ErrNothing.
func (r *run) steer(client *servers.Member, addr string) (end func(), err error) {
	i := slices.IndexFunc(r.crew, func(p *process) bool { return p.member == client })
	only := slices.Index(r.engine.Addrs, addr)
	ways := r.crew[i].links
	for n, p := range ways {
		if n != only {
			p.Refuse()
			p.Reset()
		}
	}
	end = func() { ways.each((*servers.Proxy).Pass) }
	for until := time.Now().Add(steering); time.Now().Before(until); {
		if open, _ := ways[only].Connections(); open > 0 {
			return end, nil
		}
		enginekit.Pause(context.Background(), time.Millisecond)
	}
	end()
	return nil, target.ErrNothing
}

// link says where the client finds the servers, and puts proxies between. In a network there are none without need:
// what it loses is then lost by the clients' own connections.
func (r *run) link(t testing.TB, p *process) {
	p.job.URL = r.engine.Direct()
	if r.engine.Network != nil && !slices.ContainsFunc(r.toPrepare(), target.Fault.TakesProxies) {
		return
	}
	switch {
	case r.engine.Network != nil && len(r.engine.Places) > 0:
		p.links = newLinks(t, p.member, r.engine.Places, servers.NewProxyInPlace)
	case len(r.engine.Addrs) > 0:
		p.links = newLinks(t, p.member, r.engine.Addrs, servers.NewProxyAt)
		p.job.URL = r.engine.URL(p.links.addrs())
	}
}

// toPrepare are the faults that the set-up has to allow: those of the run, and Slow if holds are long, because the
// server is far away then.
func (r *run) toPrepare() []target.Fault {
	if r.Long {
		return append(slices.Clone(r.Faults), target.Slow)
	}
	return r.Faults
}

// torture lets the nemesis rage, then gives everybody the time to recover, and ends the processes.
func (r *run) torture(ctx context.Context, a *About) (err error) {
	end, err := r.watchLag(ctx)
	if err != nil {
		return errors.Join(err, r.endAll())
	}
	defer func() { err = errors.Join(err, end()) }()
	endDisk, err := r.watchDisk(ctx)
	if err != nil {
		return errors.Join(err, r.endAll())
	}
	defer func() { err = errors.Join(err, endDisk()) }()
	n, err := newNemesis(r)
	if err != nil {
		return errors.Join(err, r.endAll())
	}
	defer func() { err = errors.Join(err, n.file.Close()) }()
	if err := r.warmUp(ctx); err != nil {
		return errors.Join(err, r.endAll())
	}
	if err := r.goAway(ctx); err != nil {
		return errors.Join(err, r.endAll())
	}
	a.Begin = history.Now()
	raging, cancel := during(ctx, r.Duration)
	if r.Increments > 0 {
		r.register.Await(r.Increments, cancel)
	}
	err = n.rage(raging)
	cancel()
	a.Quiet = history.Now()
	if err == nil && !r.Long { // then nobody waits
		rest(ctx, r.Target.Heal+2*r.lease+r.OneByOne())
	}
	a.End = history.Now()
	for _, p := range r.crew {
		if e := p.end(r.Target.Heal + 10*time.Second); e != nil {
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
		enginekit.Pause(ctx, 20*time.Millisecond)
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return errors.New("without any fault nobody got a lock within 30 s; see the files *.stderr of the run")
}

func (r *run) endAll() error {
	var errs []error
	for _, p := range r.crew {
		errs = append(errs, p.end(time.Second))
	}
	return errors.Join(errs...)
}

// heartbeat is how long the place of a waiter counts that is heard of no more, and a bit.
const heartbeat = 6 * time.Second

// residue lists what is left when all that ends by itself has ended.
func (r *run) residue(ctx context.Context) ([]string, error) {
	rest(ctx, max(r.lease+r.lease/2, heartbeat))
	var left []string
	var looked error
	// Before we come as a client ourselves.
	if err := r.stage.Play(func(testing.TB) { left, looked = r.engine.Left(ctx) }); err != nil || looked != nil {
		return nil, cmp.Or(err, looked)
	}
	locks, err := interlock.Open(ctx, r.engine.Direct(), &interlock.Options{Lease: r.lease, ClientName: "coordinator"})
	if err != nil {
		return nil, err
	}
	for info, err := range locks.List(ctx, "") {
		if err != nil {
			return nil, errors.Join(err, locks.Close())
		}
		left = append(left, fmt.Sprintf("%s: %d holders, %d waiters", info.Name, len(info.Holders), len(info.Waiters)))
	}
	if slices.Contains(r.can.Shares, history.Permits) {
		left = append(left, missingPermits(ctx, locks, 2*r.lease)...)
	}
	return left, locks.Close()
}

// missingPermits says what is missing if, when everybody has left, not all permits of the semaphore can be had at once.
func missingPermits(ctx context.Context, locks *interlock.Client, patience time.Duration) []string {
	wait, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	all, err := locks.Semaphore(worker.Semaphore, worker.Permits, nil).Acquire(wait, worker.Permits)
	if err == nil {
		err = all.Unlock(wait)
	}
	if err != nil {
		return []string{
			fmt.Sprintf("%s: not all %d of them are there at the end: %v", worker.Semaphore, worker.Permits, err),
		}
	}
	return nil
}

// Commit is that of interlock's source: what the program was built from or, where that does not say, as with "go run",
// what the folder is at that it was started in. It is empty if neither is known.
func Commit(ctx context.Context) string {
	var revision, changed string
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			switch {
			case s.Key == "vcs.revision":
				revision = s.Value[:min(12, len(s.Value))]
			case s.Key == "vcs.modified" && s.Value == "true":
				changed = " with changes"
			}
		}
	}
	if revision != "" {
		return revision + changed
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	text, err := exec.CommandContext(ctx, "git", "describe", "--always", "--exclude=*", "--abbrev=12",
		"--dirty= with changes").Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}
