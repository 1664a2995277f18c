package filelock

import (
	"log/slog"

	"github.com/interlock-go/interlock/driver"
)

// Options configures a [Driver]. A nil *Options means all defaults.
type Options struct {
	// Logger is told when a lock file's record is damaged or foreign, so that the next token rests on the clock alone.
	// The default discards.
	Logger *slog.Logger
	_      struct{}
}

func (o *Options) logger() *slog.Logger {
	if o == nil || o.Logger == nil {
		return slog.New(slog.DiscardHandler)
	}
	return o.Logger
}

// traits describes the engine on every system; Linux alone can say who holds a lock.
func traits(tellsHolders bool) driver.Traits {
	t := driver.Traits{
		Engine: "file",
		Ends:   driver.Process,
		Local:  true,
		Kinds:  []driver.Kind{driver.KindMutex},
		Lacks: []driver.Lack{
			{Ability: driver.NamedOwners, Reason: "the kernel knows descriptors, not owners"},
			{Ability: driver.Order, Reason: "the kernel's order is only nearly first come, first served"},
			{Ability: driver.Breaking, Reason: "the kernel cannot take a lock from a process; kill the process"},
			{Ability: driver.Waiters, Reason: "the kernel knows that somebody waits, not who"},
			{Ability: driver.Expiry, Reason: "a stopped process keeps its lock"},
			{Ability: driver.Ability(driver.KindRWMutex), Reason: "flock knows shared locks, but no fair queue of them and no tokens"},
			{Ability: driver.Ability(driver.KindSemaphore), Reason: "flock counts nothing"},
			{Ability: driver.LossDelays, Reason: "the kernel frees a lock with its process, and cannot keep others out after that"},
		},
	}
	if !tellsHolders {
		t.Lacks = append(t.Lacks, driver.Lack{
			Ability: driver.Holders, Reason: "only Linux tells whether a file is locked without taking the lock",
		})
	}
	return t
}
