package filelock

import (
	"log/slog"
	"slices"

	"github.com/interlock-go/interlock/driver"
)

// What the engine can do, and what it cannot and why.

// kinds are the locks that there are. Each kind is an ending of the file's name.
var kinds = []driver.Kind{driver.KindMutex, driver.KindRWMutex, driver.KindSemaphore, driver.KindElection}

// several reports whether a lock of kind k can have several holders at once. Only Linux has them.
func several(k driver.Kind) bool { return k == driver.KindRWMutex || k == driver.KindSemaphore }

// maxLimit is the largest limit of a semaphore.
const maxLimit = 1<<31 - 1

const noConversion = "flock gives a lock up while it changes its mode"

// checksPage is the heading that explains the checks of Diagnose.
const checksPage = "docs/doctor.md#findings-on-files"

// Options configures a [Driver]. A nil *Options means all defaults.
type Options struct {
	// Logger is told when a lock file's record is damaged or foreign, so that the next token rests on the clock alone.
	// The default discards.
	Logger *slog.Logger
	// ReadOnly is for programs that only look: the driver lists and diagnoses, needs the right to read alone, and
	// neither creates the folder nor changes anything in it. Acquire is refused. A folder that is not there has no
	// locks; a path that leads to a file is refused. In a URL it is readonly=true. The default is false.
	ReadOnly bool
	_        struct{}
}

// logger returns the Logger, or one that discards.
func (o *Options) logger() *slog.Logger {
	if o == nil || o.Logger == nil {
		return slog.New(slog.DiscardHandler)
	}
	return o.Logger
}

// traits describes the engine on every system; Linux alone can say who holds a lock.
func traits(tellsHolders bool) driver.Traits {
	t := driver.Traits{
		Engine:   "file",
		Lifetime: driver.Process,
		Local:    true,
		Kinds:    slices.Clone(kinds),
		Unsupported: []driver.Unsupported{
			{Ability: driver.NamedOwners, Reason: "the kernel knows descriptors, not owners"},
			{Ability: driver.Order, Reason: "the kernel's order is only nearly first come, first served"},
			{Ability: driver.Breaking, Reason: "the kernel cannot take a lock from a process; kill the process"},
			{Ability: driver.Waiters, Reason: "the kernel knows that somebody waits, not who"},
			{Ability: driver.Expiry, Reason: "a stopped process keeps its lock"},
			{Ability: driver.Conversion, Reason: noConversion},
			{Ability: driver.Recalls, Reason: "the kernel tells nobody that another process waits in flock"},
			{Ability: driver.Resizing, Reason: "the limit is in the marks of the files that are open, which are " +
				"each process's own"},
			{Ability: driver.LockDelays, Reason: "the kernel frees a lock with its process, and cannot keep others " +
				"out after that"},
			{
				Ability: driver.Ability(driver.KindLatch),
				Reason:  "the kernel keeps locks of living processes, not counts",
			},
			{
				Ability: driver.Ability(driver.KindCond),
				Reason:  "the kernel cannot give up a lock and wait for something else in one step",
			},
		},
	}
	if !tellsHolders {
		const reason = "only Linux has byte locks that belong to an open file"
		t.Kinds = slices.DeleteFunc(t.Kinds, several)
		t.Unsupported = append(t.Unsupported,
			driver.Unsupported{Ability: driver.Ability(driver.KindRWMutex), Reason: reason},
			driver.Unsupported{Ability: driver.Ability(driver.KindSemaphore), Reason: reason},
			driver.Unsupported{
				Ability: driver.Holders, Reason: "only Linux tells whether a file is locked without taking the lock",
			})
	}
	return t
}
