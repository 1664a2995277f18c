package interlocktest

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

// opOf returns the kind of a request from the word for it in errors.
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
