package drivertest

// The list of promises: what each means, where the contract says so, and its behaviours. suite.go decides which of them
// are run on an engine.

// Promise is one of the things that an engine keeps.
type Promise string

// The promises, each in a file of its own. docs/writing-an-engine.md says in one clause what each means.
const (
	Exclusion    Promise = "exclusion"    // a lock has one holder
	Isolation    Promise = "isolation"    // locks do not touch each other
	Atomicity    Promise = "atomicity"    // an operation happens wholly, or not at all, and only to its own hold
	Expiry       Promise = "expiry"       // a hold that is not renewed ends, not early, and for good
	Reentry      Promise = "re-entry"     // a named owner gets in again, nobody else does
	Renewal      Promise = "renewal"      // a hold lasts for as long as its client keeps it
	Fencing      Promise = "fencing"      // tokens grow, nonces are unique
	Order        Promise = "order"        // waiters are told, served, and in turn
	Cancellation Promise = "cancellation" // a wait can be given up, and leaves nothing
	Crash        Promise = "crash"        // a dead client keeps nobody out for ever
	Inspection   Promise = "inspection"   // operators see who holds and who waits
	Idempotence  Promise = "idempotence"  // a repeated request takes and frees once
	Breaking     Promise = "breaking"     // an operator can end a hold
	Sharing      Promise = "sharing"      // readers, writers and permits share one fair queue
	Requeueing   Promise = "requeueing"   // a hold is given back and asked for again in one step
	Resuming     Promise = "resuming"     // a wait can be left and taken up again
	Bundling     Promise = "bundling"     // several locks are taken in one step, all or none
	Conversion   Promise = "conversion"   // a holder takes another mode without giving up what it has
	Electing     Promise = "electing"     // a leader has a value that everybody can see
	Latching     Promise = "latching"     // a latch counts each once, and comes to zero once a round
	Conditions   Promise = "conditions"   // who gives a lock up for a signal misses none, and each wakes one
	Hanging      Promise = "hanging"      // a server that hangs keeps nobody longer than the context
	Delaying     Promise = "lock delay"   // a lost lock stays closed for a while
	Recalling    Promise = "recall"       // a holder is told that another wants the lock; a retained lock is given back
	Adopting     Promise = "adopting"     // a hold goes on to another client, which alone has it then
)

// promised is a promise and the behaviours that it consists of.
type promised struct {
	promise    Promise
	means      string // one clause
	contract   string // where package driver states it
	behaviours []behaviour
}

// promises returns all of them, in the order of the tables. docs/writing-an-engine.md has the same list, and a test
// compares.
func promises() []promised {
	return []promised{
		{Exclusion, "a lock has one holder", "Driver.Acquire", exclusion()},
		{Isolation, "locks do not touch each other", "Key", isolation()},
		{
			Atomicity, "an operation happens wholly, or not at all, and only to its own hold", "Driver.Release",
			atomicity(),
		},
		{
			Expiry, "a hold that is not renewed ends, not early, and for good", "Grant.Sent, Grant.Lease, Lifetime",
			expiry(),
		},
		{Reentry, "a named owner gets in again, nobody else does", "Request.Named", reentry()},
		{Renewal, "a hold lasts for as long as its client keeps it", "Renewer, Session", renewal()},
		{Fencing, "tokens grow, nonces are unique", "Grant.Token, Grant.Nonce", fencing()},
		{Order, "waiters are told, served, and in turn", "Request.Waiting, Request.Try", order()},
		{Cancellation, "a wait can be given up, and leaves nothing", "Driver, Release.Undo", cancellation()},
		{Crash, "a dead client keeps nobody out for ever", "Lifetime", crash()},
		{Inspection, "operators see who holds and who waits", "Inspector, Looker, HeldError", inspection()},
		{Idempotence, "a repeated request takes and frees once", "Driver.Acquire, Driver.Release", idempotence()},
		{Breaking, "an operator can end a hold", "Breaker, Request.Lost", breaking()},
		{Sharing, "readers, writers and permits share one fair queue", "Mode, Request.Limit", sharing()},
		{Requeueing, "a hold is given back and asked for again in one step", "Requeuer", requeueing()},
		{Resuming, "a wait can be left and taken up again", "Traits.Resumes", resuming()},
		{Bundling, "several locks are taken in one step, all or none", "MultiAcquirer", bundling()},
		{Conversion, "a holder takes another mode without giving up what it has", "Converter", conversion()},
		{Delaying, "a lost lock stays closed for a while", "Request.LockDelay", delaying()},
		{
			Recalling,
			"a holder is told that another wants the lock, and one that keeps a lock without an owner gives way",
			"Request.Wanted, Request.Retains, Renewal.Retained", recalling(),
		},
		{Adopting, "a hold goes on to another client, which alone has it then", "Adopter", adopting()},
		{Electing, "a leader has a value that everybody can see", "KindElection, Looker, Watcher", electing()},
		{Latching, "a latch counts each once, and comes to zero once a round", "Latcher, Watcher", latching()},
		{Conditions, "who gives a lock up for a signal misses none, and each wakes one", "Conder", conditions()},
		{Hanging, "a server that hangs keeps nobody longer than the context", "Driver", hanging()},
	}
}

// advice tells the author of an engine that breaks p what was promised and where to read on.
func (p promised) advice() string {
	return "the promise of " + string(p.promise) + ": " + p.means + "; the contract is package driver, at " + p.contract
}
