package driver

import (
	"time"
	"unicode/utf8"
)

// What an engine tells about its locks. Everything is the engine's view: its clock, and only those waiters that it
// knows.

// Kind is a sort of lock. Each kind has a name space of its own.
type Kind string

// The kinds of locks.
const (
	KindMutex     Kind = "mutex"    // an exclusive lock
	KindRWMutex   Kind = "rw"       // any number of readers, or one writer
	KindSemaphore Kind = "sem"      // a number of permits
	KindLatch     Kind = "latch"    // a count that goes down to zero
	KindCond      Kind = "cond"     // the condition of a mutex
	KindElection  Kind = "election" // a mutex whose holder has a value
)

// MaxLabel is how many bytes of a label, and of the other texts that only people read, every engine keeps whole.
const MaxLabel = 255

// CutLabel returns as much of label as fits into most bytes, without a part of a character at its end.
func CutLabel(label string, most int) string {
	if len(label) <= most {
		return label
	}
	end := max(most, 0)
	for end > 0 && !utf8.RuneStart(label[end]) {
		end--
	}
	return label[:end]
}

// Holder is one hold of a lock, as the engine sees it.
type Holder struct {
	Owner  string    // id of the owner
	Client string    // the client's name, for instance "host:pid"
	Label  string    // what the owner shows to operators
	Token  uint64    // first token of its block
	Weight int       // permits that it holds; 1 for other kinds than semaphores
	Shared bool      // others may hold the lock beside it
	Since  time.Time // of the grant, by the engine's clock; zero if the engine does not tell
	Until  time.Time // end of the lease, by the engine's clock; zero if the engine does not tell
	Named  bool      // Owner is a named owner's; see [Request]

	// Cooldown says that the hold is over, released with [Release].Keep or lost with a [Request].LockDelay, and only
	// keeps others out until Until. It is false on engines that keep no such holds.
	Cooldown bool

	// Retained says that nobody holds the lock, but Client keeps it, to take it again without a message, and gives it
	// back when another wants it. See [Request].Retains. Owner is empty then.
	Retained bool
}

// Waiter is one request in a lock's queue, as the engine sees it. The engine does not know goroutines that wait behind
// another one of their own process.
type Waiter struct {
	Owner    string    // id of the owner
	Client   string    // the client's name, for instance "host:pid"
	Label    string    // what the owner shows to operators
	Weight   int       // permits that it asks for; 1 for other kinds than semaphores
	Shared   bool      // it asks to hold the lock beside others
	Since    time.Time // when it began to wait, by the engine's clock; zero if the engine does not tell
	Position int       // 1 = next; 0 if the engine does not tell
	Named    bool      // as of a Holder
}

// LockInfo is what an engine tells about one lock.
type LockInfo struct {
	Kind    Kind     // of the lock
	Name    string   // of the lock
	Limit   int      // how many permits a semaphore has; 0 of other kinds
	Holders []Holder // in no promised order; empty if the lock is free
	Waiters []Waiter // in the order of the queue, if the engine has one

	// Unreadable says why no more than kind and name is known. Another program has stored something else there, the
	// lock is of a later version, or a right is missing. It is empty if the lock was read. It never shows what is
	// stored.
	Unreadable string
}
