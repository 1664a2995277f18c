package mutants

import (
	"cmp"
	"slices"
)

// Variable names the environment's variable that says which mutant a program is.
const Variable = "INTERLOCK_MUTANT"

// Mutant is a known bug.
type Mutant struct {
	ID     string // M1, M2 and so on
	Bug    string
	Known  string // who has had it; empty if it needs no witness
	Edits  []Edit
	Checks []Check // each must turn red
}

// Edit is a change of a source file: the text Old, which is at exactly one place, becomes New. Go code asks isMutant
// with its switch, which is there in every package that is edited. A script in Lua needs no question, because it is
// changed when it is loaded.
type Edit struct {
	File string // from the root of the clone, with slashes
	Old  string
	New  string
	For  []Where // the programs that it is for; empty if there is one only, or for all
	As   string  // its switch; the mutant's ID if empty
}

func (e *Edit) switchOf(m *Mutant) string {
	if e.As != "" {
		return e.As
	}
	return m.ID
}

// Check is what must notice.
type Check struct {
	Name   string // of the checker, for people
	Where  Where
	Test   string   // for -test.run
	Args   []string // more arguments; SEED stands for the seed
	Says   string   // a regular expression: what it says when it is red for the right reason
	Switch string   // of the edits that are meant; the mutant's ID if empty
}

// Where is the folder of the package whose test program, or whose command, is run.
type Where string

// The places.
const (
	Core        Where = "."
	Simulation  Where = "internal/sim"
	FenceModel  Where = "internal/fencemodel"
	HandOff     Where = "internal/handoff"
	Redis       Where = "redislock"
	RueidisConn Where = "redislock/internal/rueidisconn"
	Redlock     Where = "redislock/redlock"
	Etcd        Where = "etcdlock"
	ZooKeeper   Where = "zklock"
	Torture     Where = "torture/cmd/interlock-torture" // a command: real processes, and the checks K1 to K11
)

// All lists the mutants, in order.
func All() []Mutant {
	all := slices.Concat(cores(), remains(), ofRedis(), ofOthers(), fences(), ofWorkloads(), ofTheHarness(),
		ofRetention())
	slices.SortFunc(all, func(a, b Mutant) int {
		return cmp.Or(cmp.Compare(len(a.ID), len(b.ID)), cmp.Compare(a.ID, b.ID)) // M2 before M10
	})
	return all
}

// runsOfASeed is how many runs of the simulation one seed of a hunt is at most. It ends at the first that is red.
const runsOfASeed = "30"

// simulated is a check of the simulation: processes, network and engine in virtual time, no server.
func simulated(checker string, more ...string) Check {
	args := append([]string{"-sim.stop=" + checker, "-sim.seeds=" + runsOfASeed, "-sim.hunt=SEED"}, more...)
	return Check{
		Name: "simulation: " + checker, Where: Simulation, Test: "^TestSimulation$", Args: args,
		Says: ` ` + checker + `: `,
	}
}

// lossy makes a simulation one in which nothing happens but that single messages are lost.
const lossy = "-sim.lossy"

// tortured is a check of a run with real processes.
func tortured(check, engine, faults, duration string) Check {
	args := []string{
		"run", "-engine", engine, "-faults", faults, "-seed", "SEED", "-duration", duration, "-workers", "4x2",
	}
	return Check{
		Name: "torture: " + check + " (" + engine + ", " + faults + ")", Where: Torture, Args: args,
		Says: check + " +BROKEN",
	}
}

// key is what checks have in common that are the same program with the same arguments: one run without
// a bug is enough for them.
func (c *Check) key() string { return string(c.Where) + "\x00" + c.Test + "\x00" + join(c.Args) }
