package run

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/interlock-go/interlock/torture/target"
)

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
