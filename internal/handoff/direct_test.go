package handoff

import "testing"

// twoDirect has every fault of clients and network, and no third client.
func twoDirect(r Rules) *directs {
	return &directs{
		queues: queues{rules: r, clients: 2, crashes: 2, lease: 3, claim: 2, heartbeat: 2, room: 2}, breaks: 1,
	}
}

// movedDirect has a waiter behind the named one, and somebody who breaks holds and moves waiters.
func movedDirect(r Rules) *directs {
	q := queues{rules: r, clients: 3, lease: 2, claim: 1, heartbeat: 1, room: 1}
	return &directs{queues: q, breaks: 1, moves: 1}
}

// silentDirect has places that outlast a claim, so that somebody is named who was behind another.
func silentDirect(r Rules) *directs {
	return &directs{queues: queues{rules: r, clients: 3, lease: 2, claim: 2, heartbeat: 3, room: 1}}
}

// busyDirect has claims that come late.
func busyDirect(r Rules) *directs {
	return &directs{queues: queues{rules: r, clients: 3, lease: 2, claim: 1, heartbeat: 1, room: 2}}
}

// The usual bounds are those that show rules missing.
func TestSoundProtocol_HasNoTwoHoldersNoOrphanAndNoLostWaiter_DirectTwoClients(t *testing.T) {
	raced, widest := twoDirect(Sound()), twoDirect(Sound())
	raced.room = 1
	widest.lease, widest.claim, widest.heartbeat, widest.room = 4, 2, 3, 3
	requireSound(t, 250_000, twoDirect(Sound()), raced, widest)
}

func TestSoundProtocol_HandsOverInOrderWithGrowingTokens_DirectWithBreaksAndMoves(t *testing.T) {
	raced, widest := movedDirect(Sound()), movedDirect(Sound())
	raced.moves = 0
	widest.crashes, widest.heartbeat = 1, 2
	requireSound(t, 150_000, movedDirect(Sound()), raced, widest)
}

func TestSoundProtocol_HandsOverInOrderWithGrowingTokens_DirectWithSilentWaiters(t *testing.T) {
	raced, widest := silentDirect(Sound()), silentDirect(Sound())
	raced.heartbeat = 2
	widest.lease = 3
	requireSound(t, 450_000, silentDirect(Sound()), raced, widest)
}

func TestSoundProtocol_HandsOverInOrderWithGrowingTokens_DirectWithMoreUnderWay(t *testing.T) {
	raced, widest := busyDirect(Sound()), busyDirect(Sound())
	raced.room = 1
	widest.crashes, widest.heartbeat = 1, 2
	requireSound(t, 350_000, busyDirect(Sound()), raced, widest)
}

func TestRule_Named_WhoIsNextIsNamed_WithoutIt_ALaterWaiterOvertakes(t *testing.T) {
	r := Sound()
	r.NamedNext = false
	requireFault(t, silentDirect(r), OutOfOrder)
}

func TestRule_Named_OnlyAHolderThatHasClaimedIsTold_WithoutIt_ItGetsBehindItsOwnSuccessor(t *testing.T) {
	r := Sound()
	r.NamedClaimed = false
	requireFault(t, silentDirect(r), OutOfOrder)
}

func TestRule_Named_OneAtATime_WithoutIt_TheHolderTellsOneAndTheEngineAnother(t *testing.T) {
	r := Sound()
	r.NamedOne = false
	requireFault(t, movedDirect(r), TwoInside)
}

func TestRule_Named_ANamingEnds_WithoutIt_ADeadSuccessorKeepsTheOthersWaiting(t *testing.T) {
	r := Sound()
	r.NamedEnds = false
	requireFault(t, twoDirect(r), LostWaiter)
}

func TestRule_Named_TheEngineKeepsTheToken_WithoutIt_TheHolderMakesOneThatIsMadeAgain(t *testing.T) {
	r := Sound()
	r.NamedToken = false
	requireFault(t, movedDirect(r), TokenNotNewer)
}

func TestRule_Named_AReleasedLockGoesToTheNamed_WithoutIt_WhoIsAtTheHeadByNowIsInsideBesideIt(t *testing.T) {
	r := Sound()
	r.NamedAtRelease = false
	requireFault(t, movedDirect(r), TwoInside)
}

func TestRule_Named_AnExpiredLockGoesToTheNamed_WithoutIt_ItIsTakenWhileTheWordIsOnItsWay(t *testing.T) {
	r := Sound()
	r.NamedAtExpiry = false
	requireFault(t, silentDirect(r), TwoInside)
}

func TestRule_Named_ABrokenLockGoesToTheNamed_WithoutIt_TheBrokenHolderLetsASecondOneIn(t *testing.T) {
	r := Sound()
	r.NamedAtBreak = false
	requireFault(t, movedDirect(r), TwoInside)
}

func TestRule_Told_TheWordIsTrustedUntilTheNamingEnds_WithoutIt_ALateWordMakesTwoHolders(t *testing.T) {
	r := Sound()
	r.ToldUntil = false
	requireFault(t, movedDirect(r), TwoInside)
}

func TestRule_Told_WhoHasCancelledDoesNotListen_WithoutIt_ItIsInsideBesideTheNext(t *testing.T) {
	r := Sound()
	r.LeftIsFinal = false
	requireFault(t, silentDirect(r), TwoInside)
}

func TestRule_Told_AClaimEndsTheHoldBeforeIt_WithoutIt_ADeadHolderTakesItsSuccessorWithIt(t *testing.T) {
	r := Sound()
	r.ClaimProves = false
	requireFault(t, twoDirect(r), FalseLoss)
}

func TestRule_Told_AClaimEndsThatHoldOnly_WithoutIt_ALateOnePutsALaterHolderOut(t *testing.T) {
	r := Sound()
	r.ClaimOfHold = false
	requireFault(t, busyDirect(r), FalseLoss)
}

// The word of a holder is compared with the engine's clock as a push is.
func TestRule_6_TheOffsetComesFromTheSending_WithoutIt_AHoldersWordMakesTwoHolders(t *testing.T) {
	r := Sound()
	r.TrustOffset = false
	requireFault(t, movedDirect(r), TwoInside)
}
