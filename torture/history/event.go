// Package history records what the processes of a run did and saw, one file for each process, and reads it back. A
// record is written before the next thing happens and is never changed, so what a killed process did up to its end is
// there too, and an old run can be judged again by newer checks.
package history

import "time"

// Op is what a process does.
type Op string

// The operations.
const (
	Acquire   Op = "acquire" // Lock, or TryLock
	Release   Op = "release" // Unlock
	Read      Op = "read"    // of the register
	Write     Op = "write"
	Reenter   Op = "reenter"   // Lock by an owner that has the lock: OK has the token and the nonce that it got
	Turn      Op = "turn"      // Upgrade or Downgrade to Share: OK, and a Fail, have the token of the hold after it
	CountDown Op = "countdown" // of a latch: OK has what is left as Weight
	Await     Op = "await"     // of a latch
	Wait      Op = "wait"      // for a condition: a Call has the token of the hold that is given up, OK is a new hold
	Leave     Op = "leave"     // Unlock of one of several holds of the same owner, of which others are left
	Signal    Op = "signal"    // of a condition, under its mutex, with the token of that hold
	Broadcast Op = "broadcast" // likewise
	Lost      Op = "lost"      // the lease told that it was lost
	Wanted    Op = "wanted"    // the lease told that another process wants the lock, and its holder gives way
	Start     Op = "start"     // of the process
	Lag       Op = "lag"       // the process did not get the processor for so long: Took, until now
	Disk      Op = "disk"      // the servers' disk took so long to keep a byte: Took, until now
	End       Op = "end"       // in order: what is missing then is a leak
)

// Phase is how far it has come. Call is written before the request is sent; what has only a Call when the history ends
// may have happened at any time since.
type Phase string

// The phases.
const (
	Call    Phase = "call"
	OK      Phase = "ok"
	Fail    Phase = "fail"    // it has not happened
	Unknown Phase = "unknown" // it may have happened, or may happen yet
)

// Share is how a lock that is not a mutex is held.
type Share string

// The ways.
const (
	Reads    Share = "reads"    // a read-write lock, beside other readers
	Writes   Share = "writes"   // a read-write lock, alone
	Upgrades Share = "upgrades" // a read-write lock, beside readers, to write later
	Permits  Share = "permits"  // some of a semaphore's
	Latch    Share = "latch"    // is not held at all: it is counted down, and waited for
	Waits    Share = "waits"    // a mutex that is given up until somebody signals
)

// Event is one line.
type Event struct {
	At    Instant `json:"t"`
	Proc  int     `json:"proc"`
	Gor   int     `json:"gor"`
	Seq   int     `json:"seq"` // of the acquisition that it belongs to, within the goroutine
	Op    Op      `json:"op"`
	Phase Phase   `json:"phase,omitempty"`

	Name     string        `json:"name,omitempty"`
	Token    uint64        `json:"token,omitempty"`
	Nonce    string        `json:"nonce,omitempty"`
	Deadline Instant       `json:"deadline,omitempty"` // of the lease, as its holder knew it then; 0 if it has none
	Fixed    bool          `json:"fixed,omitempty"`    // the lease is not renewed, and is meant to be overrun
	Try      bool          `json:"try,omitempty"`      // it does not wait
	Named    bool          `json:"named,omitempty"`    // it is for an owner with a name
	Share    Share         `json:"share,omitempty"`    // how the lock is shared with others; empty if it is not
	Stamp    Share         `json:"stamp,omitempty"`    // for what the stamp is: Reads or Writes; empty if there is none
	Several  bool          `json:"several,omitempty"`  // it is one of several that are taken together
	Weight   int           `json:"weight,omitempty"`   // permits of a semaphore
	Limit    int           `json:"limit,omitempty"`    // of the semaphore
	Took     time.Duration `json:"took,omitempty"`
	// how long after another goroutine was told of the end of its context a call returned; 1 ns if
	// before, 0 if it has not ended
	Late time.Duration `json:"late,omitempty"`
	Err  string        `json:"err,omitempty"`
	// Reason is how the hold was lost, if that is what its holder was told.
	Reason string `json:"reason,omitempty"`
	// Known is, of a Lost, the deadline as the holder knew it a moment before.
	Known Instant `json:"known,omitempty"`

	// Of an End: what the process still had.
	Goroutines int `json:"goroutines,omitempty"`
	Files      int `json:"files,omitempty"`
	Sockets    int `json:"sockets,omitempty"` // of those
}

// Instant is a reading of CLOCK_MONOTONIC in nanoseconds: one clock for all processes of a machine, which nobody sets.
type Instant int64

// Sub is how much later i is than other.
func (i Instant) Sub(other Instant) time.Duration { return time.Duration(i - other) }

// Add is the instant d later.
func (i Instant) Add(d time.Duration) Instant { return i + Instant(d) }

// At turns a time of this process into an instant. The zero time is the zero instant.
func At(t time.Time) Instant {
	if t.IsZero() {
		return 0
	}
	return Now().Add(time.Until(t))
}
