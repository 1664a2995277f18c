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
