package interlocktest

// Op is what a client asks the engine for.
type Op uint8

// What there is to ask.
const (
	OpAcquire Op = iota // take a lock, in whatever way: its wait, a conversion and an adoption included
	OpRenew             // renew a hold
	OpRelease           // release a hold, or take back a request whose reply was lost
	OpOther             // look, list, break, resize, signal, and all that latches do
	ops
)

// opOf sorts a request by the word for it in errors.
func opOf(word string) Op {
	switch word {
	case "acquire", "convert", "adopt", "wait":
		return OpAcquire
	case "renew":
		return OpRenew
	case "release":
		return OpRelease
	}
	return OpOther
}
