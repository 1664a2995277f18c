package driver

import "context"

// MultiAcquirer is implemented by engines that can take several locks in one atomic step. That saves a Multi a round
// trip for each lock but the first. Without it the portable layer takes them one after the other, in an order that
// excludes deadlock. It also does so for requests that AcquireAll does not support, and after a refusal if it is to
// wait.
type MultiAcquirer interface {
	// AcquireAll grants all of the requests, or none: at no instant does anybody see a part of them granted. It never
	// waits and never queues, so each request is a Try, whatever its Try says, and its Waiting is never called. The
	// answer has a grant for each request, in their order. Tokens of different locks may be equal, as always.
	//
	// If one of the locks cannot be had, the error is a *HeldError for it, and nothing was taken. Requests that the
	// engine cannot serve in one step are refused with an error matching [ErrUnsupported], and nothing was taken. The
	// reason may be locks of several shards, an owner with a name, or a state of a lock that the quick step cannot
	// judge. They may still be acquired one by one. The same error refuses a list in which a lock or an ID occurs
	// twice, and an empty one.
	//
	// The same IDs asked again get the same grants, for as long as all of them are held. If any of them has been
	// released or undone, or has ended, the error matches [ErrLost] and the step takes nothing. What an error means is
	// as for Acquire. A definite one says that nothing was taken. After every other the portable layer calls Release
	// with Undo for each of the IDs until it has succeeded.
	//
	// It returns within 50 ms after its context has ended, and costs one round trip. The requests are the caller's
	// again when it has returned; their Lost may be kept.
	AcquireAll(ctx context.Context, requests []*Request) ([]Grant, error)
}
