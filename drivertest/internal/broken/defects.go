// Package broken is the test of the conformance suite: a small sound engine, and drivers that are the same engine with
// one deliberate defect each. The suite must accept the sound one, and reject each defect for the promise that it
// breaks and for no other.
//
// The engine keeps its locks in this process and ends holds by their lease. It is written to be read beside the suite,
// not to be used: see memlock for an engine of the same sort.
//
// A defect is a condition where the sound engine does the right thing. Such conditions name other features too (an
// entry that is converted, retained or woken). There the engine stays sound, because those features have defects of
// their own and a defect may break one promise only.
package broken

import (
	"slices"

	"github.com/interlock-go/interlock/drivertest"
)

// The list of defects, each for one promise. The others stand beside the code that has them: multi.go, recall.go,
// synchronizers.go.

// Defect is a mistake in an engine, and the promise that it breaks.
type Defect struct {
	Name    string             // a sentence
	Promise drivertest.Promise // the one that it breaks, and no other
}

// The defects, each of a kind that real lock libraries have had. None is the sound engine.
var (
	None = Defect{}

	CrowdGetsIn         = Defect{"a crowd gets in", drivertest.Exclusion}
	CaseIsFolded        = Defect{"upper and lower case are one name", drivertest.Isolation}
	KindsShareNames     = Defect{"kinds share one name space", drivertest.Isolation}
	ReleaseIgnoresID    = Defect{"a release frees whatever its client holds", drivertest.Atomicity}
	RenewRevives        = Defect{"a renewal revives an ended hold", drivertest.Expiry}
	EndsEarly           = Defect{"a grant is trusted for longer than the engine keeps it", drivertest.Expiry}
	ReentryIsNewGrant   = Defect{"re-entry has a token of its own", drivertest.Reentry}
	FirstReleaseFrees   = Defect{"the first release of an owner frees the lock", drivertest.Reentry}
	RenewDoesNothing    = Defect{"a renewal says yes and does nothing", drivertest.Renewal}
	RenewShortens       = Defect{"a renewal sets the lease although it was longer", drivertest.Renewal}
	BlocksOverlap       = Defect{"a block is granted but not kept", drivertest.Fencing}
	NonceRepeats        = Defect{"the nonce is the lock's, not the grant's", drivertest.Fencing}
	TokensAreRandom     = Defect{"the token is a random number", drivertest.Fencing}
	LastComeFirstServed = Defect{"the last to come is the first served", drivertest.Order}
	TryOvertakes        = Defect{"a try gets in between a release and the next waiter", drivertest.Order}
	UndoLeavesQueued    = Defect{"undo does not look in the queue", drivertest.Cancellation}
	UndoLetsInNext      = Defect{
		"who stands behind a waiter that gives up is let in beside the holder", drivertest.Cancellation,
	}
	UndoIsForgotten = Defect{"undo does not stop a request that arrives later", drivertest.Cancellation}
	CancelEndsHolds = Defect{
		"a wait is cancelled by closing the client's connection, and its holds go with it", drivertest.Cancellation,
	}
	DeadWakeNobody    = Defect{"the end of a lease wakes no waiter", drivertest.Crash}
	PrefixIsIgnored   = Defect{"the listing ignores the prefix", drivertest.Inspection}
	FreeStaysListed   = Defect{"a lock stays listed when it is free", drivertest.Inspection}
	RestIsShownAsHeld = Defect{
		"a hold that is over and only keeps others out is listed as held", drivertest.Inspection,
	}
	RetryIsNewRequest     = Defect{"a request asked again waits behind itself", drivertest.Idempotence}
	ReleasedComesBack     = Defect{"a late copy of a request takes the lock", drivertest.Idempotence}
	BreakIgnoresToken     = Defect{"any token breaks the hold", drivertest.Breaking}
	BreakIsSilent         = Defect{"a break is not told to the holder", drivertest.Breaking}
	SmallOvertakesBig     = Defect{"a small request overtakes a big one", drivertest.Sharing}
	ReadersGetInBeside    = Defect{"readers get in beside a writer", drivertest.Sharing}
	SessionLetsInAgain    = Defect{"a session that reads gets to write beside itself", drivertest.Sharing}
	RequeueKeepsToken     = Defect{"a requeue is granted the token that it had", drivertest.Fencing}
	RequeueOvertakes      = Defect{"a requeue goes before the waiters", drivertest.Requeueing}
	RequeueWakesNobody    = Defect{"a requeue wakes no waiter", drivertest.Requeueing}
	RequeueKeepsID        = Defect{"the hold that a requeue gave back can be asked for again", drivertest.Requeueing}
	RequeueGivesFirst     = Defect{"a requeue that is refused has given the hold back", drivertest.Requeueing}
	RequeueTakesAnew      = Defect{"a requeue asks although what it gives back is over", drivertest.Requeueing}
	RequeueComesBack      = Defect{"a requeue that is cancelled takes the old hold again", drivertest.Requeueing}
	RequeueStaysQueued    = Defect{"undo does not find what a requeue has queued", drivertest.Requeueing}
	LeftLosesPlace        = Defect{"the place in the queue goes with the context of the wait", drivertest.Resuming}
	ResumedGoesToTheEnd   = Defect{"a wait that is taken up again goes to the end of the queue", drivertest.Resuming}
	ResumeForgetsGrant    = Defect{"a grant that comes while nobody acquires is overlooked", drivertest.Resuming}
	ResumedStaysQueued    = Defect{"undo does not find a wait that was taken up again", drivertest.Resuming}
	UpgradeIgnoresReaders = Defect{"an upgrade does not wait for the other readers", drivertest.Conversion}
	UpgradeGoesLast       = Defect{"an upgrade waits behind the waiters for its read to end", drivertest.Conversion}
	UpgradeKeepsToken     = Defect{"an upgrade has the token of the read", drivertest.Conversion}
	UpgradeOutlivesRead   = Defect{"an upgrade is granted although its read is over", drivertest.Conversion}
	ReaderUpgrades        = Defect{"a plain reader that asks to write waits for itself", drivertest.Conversion}
	IgnoresContexts       = Defect{"a call waits for the server, whatever its context says", drivertest.Hanging}
	SilenceIsLoss         = Defect{"a renewal without an answer says that the hold is lost", drivertest.Hanging}
	LossIsForgotten       = Defect{"a lock is free at once when its holder has lost it", drivertest.Delaying}
	SilenceIsForGood      = Defect{"a connection that has missed an answer is not replaced", drivertest.Hanging}
)

// All returns every defect, and not None.
func All() []Defect {
	return slices.Concat(synchronizers(), bundles(), recalls(), []Defect{
		CrowdGetsIn, CaseIsFolded, KindsShareNames, ReleaseIgnoresID, RenewRevives, EndsEarly, ReentryIsNewGrant,
		FirstReleaseFrees, RenewDoesNothing, RenewShortens, BlocksOverlap, NonceRepeats, TokensAreRandom,
		LastComeFirstServed, TryOvertakes, UndoLeavesQueued, UndoLetsInNext, UndoIsForgotten, CancelEndsHolds,
		DeadWakeNobody, PrefixIsIgnored, FreeStaysListed, RestIsShownAsHeld, RetryIsNewRequest,
		ReleasedComesBack, BreakIgnoresToken, BreakIsSilent, SmallOvertakesBig, ReadersGetInBeside, SessionLetsInAgain,
		RequeueKeepsToken, RequeueOvertakes, RequeueWakesNobody, RequeueKeepsID, RequeueGivesFirst, RequeueTakesAnew,
		RequeueComesBack, RequeueStaysQueued, LeftLosesPlace, ResumedGoesToTheEnd, ResumeForgetsGrant,
		ResumedStaysQueued, UpgradeIgnoresReaders, UpgradeGoesLast, UpgradeKeepsToken, UpgradeOutlivesRead,
		ReaderUpgrades, IgnoresContexts, SilenceIsLoss, SilenceIsForGood, LossIsForgotten,
	})
}

// The defects of looks, elections, latches, semaphores, adoptions and conditions.

// The defects of looks, elections and latches.
var (
	LookFindsLonger = Defect{"a look takes the name for a prefix", drivertest.Inspection}

	ValueOfTheFirst = Defect{"the next leader is shown with the value of the one before", drivertest.Electing}
	WatchMissesEnds = Defect{"a watch does not tell that nobody leads any more", drivertest.Electing}

	LatchCountsTwice   = Defect{"a count-down asked again counts again", drivertest.Latching}
	LatchSetTwice      = Defect{"a set asked again sets again", drivertest.Latching}
	LatchSetAnew       = Defect{"a latch that counts can be set", drivertest.Latching}
	LatchForgetsRounds = Defect{"a set forgets who has counted in the round before", drivertest.Latching}
	LatchGoesBelowZero = Defect{"a latch counts below zero", drivertest.Latching}
	LatchIsSilent      = Defect{"a latch that comes to zero tells nobody", drivertest.Latching}
)

// The defects of semaphores that are resized.
var (
	ResizeWakesNobody = Defect{"a larger limit lets no waiter in", drivertest.Sharing}
	ResizeLocksOut    = Defect{"a limit is made smaller than what somebody waits for", drivertest.Sharing}
)

// The defects of holds that are adopted.
var (
	AdoptionKeepsGiver = Defect{"who has given a hold away can renew it", drivertest.Adopting}
	AdoptionKeepsToken = Defect{"a hold that is adopted keeps its token", drivertest.Adopting}
	AdoptionIsSilent   = Defect{"an adoption is not told to the former holder", drivertest.Adopting}
)

// The defects of conditions.
var (
	CondKeepsLock      = Defect{"a wait for a signal keeps the lock", drivertest.Conditions}
	SignalWakesAll     = Defect{"a signal wakes all", drivertest.Conditions}
	SignalIsKept       = Defect{"a signal with nobody waiting is kept for the next one", drivertest.Conditions}
	SignalCountsTwice  = Defect{"a signal asked again wakes another", drivertest.Conditions}
	SignalIsLost       = Defect{"a signal is lost with a waiter that gives up", drivertest.Conditions}
	CondIgnoresNesting = Defect{"a wait gives one of two holds up", drivertest.Conditions}
	DeadTakeSignals    = Defect{"a signal is lost with a dead client", drivertest.Conditions}
	WokenOvertake      = Defect{"a woken waiter goes before the waiters for the lock", drivertest.Conditions}
)

func synchronizers() []Defect {
	return []Defect{
		LookFindsLonger, ValueOfTheFirst, WatchMissesEnds,
		LatchCountsTwice, LatchSetTwice, LatchSetAnew, LatchForgetsRounds, LatchGoesBelowZero, LatchIsSilent,
		AdoptionKeepsGiver, AdoptionKeepsToken, AdoptionIsSilent,
		ResizeWakesNobody, ResizeLocksOut,
		CondKeepsLock, SignalWakesAll, SignalIsKept, SignalCountsTwice, SignalIsLost, CondIgnoresNesting,
		DeadTakeSignals, WokenOvertake,
	}
}
