package run

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/enginekit"
	"github.com/interlock-go/interlock/internal/childproc"
	"github.com/interlock-go/interlock/internal/servers"
	"github.com/interlock-go/interlock/torture/history"
	"github.com/interlock-go/interlock/torture/register"
	"github.com/interlock-go/interlock/torture/target"
)

// FaultsFile is the name of the log of what the nemesis did, in a run's folder.
const FaultsFile = "faults.jsonl"

// Blow is one fault as it was done: a line of that log.
type Blow struct {
	From  history.Instant `json:"from"`
	To    history.Instant `json:"to"`
	Fault target.Fault    `json:"fault"`
	Proc  int             `json:"proc"`            // who was hit; -1 for the server
	Waits string          `json:"waits,omitempty"` // who was hit stood first in the line for this lock
	// Ends is of how many endings the answers were lost, by what they were.
	Ends map[register.Ending]int `json:"ends,omitempty"`
	Err  string                  `json:"err,omitempty"`
}

// nemesis does faults one after the other, as their plans say. The seed decides which fault, its victim and its length;
// when exactly each process is in which line of its code is for the machine to decide.
type nemesis struct {
	*run
	file *os.File

	mu  sync.Mutex // guards log
	log *json.Encoder
}

func newNemesis(r *run) (*nemesis, error) {
	file, err := os.Create(filepath.Join(r.Dir, FaultsFile))
	if err != nil {
		return nil, err
	}
	return &nemesis{run: r, log: json.NewEncoder(file), file: file}, nil
}

// rage goes on until ctx ends. After each fault there is a quiet time in which everybody has to get on again.
func (n *nemesis) rage(ctx context.Context) error {
	for number := uint64(0); ctx.Err() == nil; number++ {
		p := n.plan(number)
		victim, waits := n.victim(p), ""
		if p.fault == target.KillWaiter {
			victim, waits = n.firstInLine(ctx, p.lasts)
		}
		if p.fault == target.None || victim == nil {
			enginekit.Pause(ctx, p.lasts)
			continue
		}
		beside := func() error { return nil }
		if n.Pairs {
			beside = n.also(ctx, p, victim)
		}
		b := Blow{Fault: p.fault, Proc: victim.job.Proc, Waits: waits}
		if err := errors.Join(n.strike(ctx, p.dice, b, p.lasts, victim), beside()); err != nil {
			return err
		}
		enginekit.Pause(ctx, p.quiet)
	}
	return nil
}

// victim is the process of the plan: mostly the one that touched a name last, which most likely holds its lock.
func (n *nemesis) victim(p *plan) *process {
	if latest, known := n.register.Latest(p.name); p.aimed && known {
		return n.crew[latest]
	}
	return n.crew[p.anybody]
}

// strike does one fault, heals it, and records it.
func (n *nemesis) strike(ctx context.Context, dice *rand.Rand, b Blow, lasts time.Duration, victim *process) error {
	b.From = history.Now()
	var err error
	switch fault := b.Fault; fault {
	case target.Kill, target.KillWaiter: // as Fault.Kills says
		victim.kill()
		enginekit.Pause(ctx, lasts/4)
		b.To = history.Now()
		err = victim.again()
	case target.KillAsking:
		n.killAsking(ctx, dice, &b, lasts, victim)
		err = victim.again()
	case target.Stop:
		life := victim.life()
		_ = life.Suspend() // it may have ended, as whoever else is hit at the same time
		enginekit.Pause(ctx, lasts)
		_ = life.Resume()
	case target.NoFiles:
		err = n.closeFiles(ctx, victim, lasts)
	case target.LoseEnds:
		b.Ends, err = n.loseEnds(ctx, dice, lasts, victim)
	case target.Cut, target.LateRequests, target.LoseReplies, target.Reset, target.Slices, target.OneConn:
		victim.links.some(dice).disturb(ctx, dice, fault, lasts)
	default:
		b.Proc = -1
		err = n.untold(ctx, fault, lasts, victim, func(lasts time.Duration) error {
			return n.harm(ctx, dice, fault, lasts)
		})
	}
	if errors.Is(err, target.ErrNothing) {
		return nil // so that nobody counts it
	}
	if b.To == 0 {
		b.To = history.Now()
	}
	if err != nil {
		b.Err = err.Error()
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	return errors.Join(err, n.log.Encode(b))
}

// killAsking kills a client while its requests are under way, whatever they are: each of its goroutines has come to one
// of them by then. Either the server has done them and nobody hears of it, or they arrive when their sender is dead:
// that is when the death counts.
func (n *nemesis) killAsking(ctx context.Context, dice *rand.Rand, b *Blow, lasts time.Duration, victim *process) {
	if dice.IntN(2) == 0 {
		victim.links.each((*servers.Proxy).DropReplies)
	} else {
		victim.links.each(func(p *servers.Proxy) { p.BlackHole(servers.ToServer) })
	}
	enginekit.Pause(ctx, lasts/8)
	victim.kill()
	enginekit.Pause(ctx, lasts/8)
	b.From = history.Now()
	victim.links.each((*servers.Proxy).Pass)
	enginekit.Pause(ctx, lasts/4)
	b.To = history.Now()
}

// single are the faults that a single client can have.
var single = []target.Fault{
	target.Kill, target.KillAsking, target.Stop, target.NoFiles, target.Cut, target.LateRequests, target.LoseReplies,
	target.LoseEnds, target.Reset, target.Slices, target.OneConn,
}

// also begins a fault of another client, if there is any, and returns what waits for its end.
func (n *nemesis) also(ctx context.Context, p *plan, but *process) (wait func() error) {
	can := slices.DeleteFunc(slices.Clone(single), func(f target.Fault) bool { return !slices.Contains(n.Faults, f) })
	others := slices.DeleteFunc(slices.Clone(n.crew), func(other *process) bool { return other == but })
	if len(can) == 0 || len(others) == 0 {
		return func() error { return nil }
	}
	dice := p.another
	fault, victim := can[dice.IntN(len(can))], others[dice.IntN(len(others))]
	done := make(chan error, 1)
	// ends when the fault has healed
	go func() { done <- n.strike(ctx, dice, Blow{Fault: fault, Proc: victim.job.Proc}, p.lasts, victim) }()
	return func() error { return <-done }
}

// harm does something to the server, or to everybody.
func (n *nemesis) harm(ctx context.Context, dice *rand.Rand, fault target.Fault, lasts time.Duration) error {
	s := n.engine.Server
	switch fault {
	case target.ServerStop:
		s.Stop()
		enginekit.Pause(ctx, lasts)
		s.Cont()
	case target.ServerKill:
		s.Kill()
		enginekit.Pause(ctx, lasts/4)
		return n.stage.Play(func(testing.TB) { s.Restart() })
	case target.Slow:
		by := time.Duration(dice.Int64N(int64(3 * n.lease / 2)))
		n.register.Delay(by)
		for _, p := range n.crew {
			p.links.delay(by / 4)
		}
		enginekit.Pause(ctx, lasts)
		for _, p := range n.crew {
			p.links.delay(0)
		}
		n.register.Delay(0)
	case target.Starve:
		return starve(ctx, lasts)
	default:
		inject := n.engine.Injections[fault]
		if inject == nil {
			return fmt.Errorf("the fault %s cannot be done to %s", fault, n.Target.Name)
		}
		var injected error
		// servers tell the stage what they fail with
		played := n.stage.Play(func(testing.TB) { injected = inject(ctx, dice, lasts) })
		if ctx.Err() != nil && !errors.Is(injected, target.ErrNothing) {
			injected = nil // it was cut short, and has healed
		}
		return cmp.Or(played, injected)
	}
	return nil
}

// starve has twice as many processes as there are processors calculate, and lets everybody else have what they leave.
func starve(ctx context.Context, lasts time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, lasts)
	defer cancel()
	var failed error
	for range 2 * runtime.NumCPU() {
		hog := exec.CommandContext(ctx, "sh", "-c", "while :; do :; done") // is killed when ctx ends
		p, err := childproc.Start(hog, nil)
		if err != nil {
			failed = err
			cancel()
			break
		}
		defer p.Kill()
	}
	<-ctx.Done()
	return failed
}

// plan is one blow as the seed decides it, before anybody knows what it will meet. Each blow has dice of its own, and
// so has what is done beside it: how often a blow draws is for the machine to decide, as of connections that are reset
// again and again, and whatever came before it must not change the next.
type plan struct {
	fault   target.Fault
	lasts   time.Duration
	name    string // of the lock whose latest holder is hit,
	aimed   bool   // or, if it is not aimed, or nobody has touched that lock,
	anybody int    // which of the crew
	quiet   time.Duration
	dice    *rand.Rand // of the blow itself
	another *rand.Rand // of what is done beside it
}

// plan is the blow of that number. It follows from the run's configuration and from nothing else.
func (n *nemesis) plan(number uint64) *plan {
	dice := rand.New(rand.NewPCG(n.Seed, 1<<32+number)) // the register and the workers have other streams of the seed
	p := &plan{dice: rand.New(rand.NewPCG(dice.Uint64(), 0)), another: rand.New(rand.NewPCG(dice.Uint64(), 0))}
	p.fault = n.Faults[dice.IntN(len(n.Faults))]
	if dice.IntN(3) == 0 && slices.Contains(n.Faults, target.Stop) {
		p.fault = target.Stop // more often than others: it is what makes holders stale
	}
	if p.fault == target.Kill && slices.Contains(n.Faults, target.KillWaiter) && dice.IntN(2) == 0 {
		p.fault = target.KillWaiter // so that each run of mixed faults has some
	}
	usual := n.Target.Lease // one that was made longer is to outlast them
	p.lasts = usual/2 + time.Duration(dice.Int64N(int64(5*usual/2)))
	p.aimed, p.name, p.anybody = dice.IntN(6) > 0, n.names[dice.IntN(len(n.names))], dice.IntN(len(n.crew))
	p.quiet = time.Duration(dice.Int64N(int64(usual / 2)))
	return p
}

// firstInLine finds a process that stands first in the line for a lock, and the lock's name. It returns nil if
// there is none for that long.
func (n *nemesis) firstInLine(ctx context.Context, patience time.Duration) (*process, string) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	locks, err := interlock.Open(ctx, n.engine.Direct(), &interlock.Options{Lease: n.lease, ClientName: "nemesis"})
	if err != nil {
		return nil, "" // the engine has not recovered from the last fault
	}
	defer func() { _ = locks.Close() }()
	for ctx.Err() == nil {
		if who, name := n.anyFirst(ctx, locks); who != nil {
			return who, name
		}
		enginekit.Pause(ctx, 20*time.Millisecond)
	}
	return nil, ""
}

// anyFirst looks once, and draws one of those that are first now.
func (n *nemesis) anyFirst(ctx context.Context, locks *interlock.Client) (who *process, of string) {
	seen := 0
	for info, err := range locks.List(ctx, "") {
		if err != nil || ctx.Err() != nil {
			return nil, ""
		}
		if first := n.firstOf(&info); first != nil {
			if seen++; rand.IntN(seen) == 0 { // not the seed's dice: who waits is not for the seed to say
				who, of = first, info.Name
			}
		}
	}
	return who, of
}

// firstOf is who is first in line for a mutex and lives: the dead keep their places for a while.
func (n *nemesis) firstOf(info *interlock.LockInfo) *process {
	if info.Kind != driver.KindMutex {
		return nil
	}
	for _, w := range info.Waiters {
		for _, p := range n.crew {
			if p.job.ClientName() == w.Client && p.isOf(w.Since) {
				return p
			}
		}
	}
	return nil
}

// longHold is for how many leases a long hold lasts, and far which part of a lease each way to the
// server and back takes then.
const (
	longHold = 20
	far      = 0.15
)

func (r *run) long() time.Duration {
	if !r.Long {
		return 0
	}
	return longHold * r.lease
}

// goAway puts the server far away if holds must be long: when all have begun, because to
// connect takes many round trips.
func (r *run) goAway(ctx context.Context) error {
	if !r.Long {
		return nil
	}
	for _, name := range r.names {
		for end := time.Now().Add(30 * time.Second); ; enginekit.Pause(ctx, 20*time.Millisecond) {
			if _, ok := r.register.Latest(name); ok {
				break
			}
			if time.Now().After(end) || ctx.Err() != nil {
				return fmt.Errorf("%s was not taken within 30 s; see the files *.stderr of the run", name)
			}
		}
	}
	// Each hold is renewed once before that: a server that does not have the script yet is asked twice, which would
	// take six tenths of a lease and leave hardly anything.
	enginekit.Pause(ctx, r.lease/2)
	for _, p := range r.crew {
		if len(p.links) == 0 {
			return fmt.Errorf("there is no way to %s on which anything could be slow", r.Target.Name)
		}
		p.links.delay(time.Duration(far * float64(r.lease)))
	}
	return nil
}

// untold has a fault done to the server and, if the end of its connections would tell every holder at once, one client
// hear nothing of it: no byte and no end of a connection passes to it, or from it, for a lease from just before the
// fault. As an engine has it, the session has ended then, and with it the hold; as that client has it, both last until
// their own ends. The fault itself is shorter than that, so that others can have the lock by then.
func (n *nemesis) untold(
	ctx context.Context, fault target.Fault, lasts time.Duration, victim *process, harm func(lasts time.Duration) error,
) error {
	if len(victim.links) == 0 || !slices.Contains(n.Target.Untold, fault) {
		return harm(lasts)
	}
	dark, light := context.WithTimeout(ctx, n.lease)
	defer light()
	victim.links.each(func(p *servers.Proxy) { p.BlackHole(servers.BothWays) })
	defer victim.links.each((*servers.Proxy).Pass)
	err := harm(min(lasts, n.lease/4))
	<-dark.Done()
	return err
}
