// Package faulty makes the way to an engine bad. It wraps any driver, and delays, loses, fails, repeats or holds up
// what goes through, as a network and a server under stress do. The wrapper keeps the optional interfaces of the
// wrapped driver. Of those that the driver lacks, the wrapper also lacks Requeuer, Converter and Watcher, and answers
// driver.ErrUnsupported for the others.
//
//	d, control := faulty.Wrap(inner, seed, faulty.Rule{Op: faulty.Renew, From: 3, Drop: faulty.Reply})
//	control.Pause() // from now on the server hangs
//
// The same seed and the same order of calls give the same faults. Everything waits on channels, so it also works in the
// virtual time of testing/synctest.
package faulty

import (
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/drivertest/internal/optional"
)

// Op names an operation.
type Op string

// The operations. Traits, Close and Diagnose are never disturbed.
const (
	Acquire Op = "acquire" // driver.Driver
	Release Op = "release" // driver.Driver
	Renew   Op = "renew"   // a batch is one operation: all its answers suffer alike
	Requeue Op = "requeue" // driver.Requeuer
	Convert Op = "convert" // driver.Converter
	Adopt   Op = "adopt"   // driver.Adopter
	Resize  Op = "resize"  // driver.Resizer
	Locks   Op = "locks"   // driver.Inspector
	Break   Op = "break"   // driver.Breaker
	Look    Op = "look"    // driver.Looker

	AcquireAll Op = "acquire all" // one operation, for the first of its locks as for the others

	Watch      Op = "watch"       // each change that is told, of which Drop counts and nothing else
	SetLatch   Op = "set latch"   // driver.Latcher
	CountDown  Op = "count down"  // driver.Latcher
	LatchCount Op = "latch count" // driver.Latcher
	CondWait   Op = "cond wait"   // driver.Conder
	CondSignal Op = "cond signal" // driver.Conder
)

// Part is a half of an operation.
type Part uint8

const (
	// Request is the way there: what is lost on it never happens.
	Request Part = iota + 1
	// Reply is the way back: what is lost on it has happened.
	Reply
)

// Rule says which calls suffer what. The zero value disturbs nothing. A Rule is never changed by this package.
type Rule struct {
	// Which calls: those of one operation and one lock; an empty field means every one.
	Op   Op
	Name string // of the lock

	From   int     // from the n-th such call on, counted from 1; 0 means 1
	Count  int     // how many of them; 0 means all
	Chance float64 // each with this probability; 0 means always

	// What they suffer. Everything that is set happens, in this order.
	Before time.Duration // how long the request travels
	Err    error         // the call fails with it, and is never made
	Drop   Part          // this part is lost; the caller gets a *driver.UnavailableError
	Hang   bool          // with Drop: the caller gets nothing, so the call ends with its context
	After  time.Duration // how long the reply travels
	Copy   time.Duration // a copy of the request arrives this long after the reply; its own reply is lost

	// Standing makes it a rule of the network and not of a call: it loses the part that Drop says of every call that it
	// covers as long as it is among the rules, also of calls that were under way before. Err is then the cause that the
	// caller is told. The other fields have no effect. A standing rule does not keep another one from deciding.
	Standing bool

	_ struct{}
}

// Wrap returns a driver that behaves as d does through a network with the given faults, and the Control of the faults.
// The first rule that covers a call decides, beside those that are Standing. Closing the driver ends copies that are
// under way and closes d.
func Wrap(d driver.Driver, seed uint64, rules ...Rule) (driver.Driver, *Control) {
	c := newControl(seed, rules)
	return optional.Show(&wrapped{d: optional.Complete(d), c: c}, optional.Of(d)), c
}
