package interlocktest

import "github.com/interlock-go/interlock/drivertest/faulty"

// Op is a kind of request to the engine.
type Op uint8

// The kinds of requests.
const (
	OpAcquire Op = iota // take a lock, in whatever way: its wait, a conversion and an adoption included
	OpRenew             // renew a hold
	OpRelease           // release a hold, or take back a request whose reply was lost
	OpOther             // look, list, break, resize, signal, and all that latches do
	ops
)

// operations are what drivertest/faulty calls the requests of each kind.
var operations = [ops][]faulty.Op{
	OpAcquire: {faulty.Acquire, faulty.Requeue, faulty.AcquireAll, faulty.Convert, faulty.Adopt, faulty.CondWait},
	OpRenew:   {faulty.Renew},
	OpRelease: {faulty.Release},
	OpOther: {
		faulty.Look, faulty.Locks, faulty.Break, faulty.Resize, faulty.SetLatch, faulty.CountDown, faulty.LatchCount,
		faulty.CondSignal,
	},
}
