package handoff

import "testing"

// oneRetainer has time enough for every fault that a broken rule of retention causes.
func oneRetainer(r Rules) *retains { return &retains{rules: r, locks: 2, lease: 3, short: 2, room: 2} }

func TestSoundProtocol_HasNoTwoHoldersAndNoLostWaiter_Retention(t *testing.T) {
	bounds := func(lease, short uint8, room int) *retains {
		return &retains{rules: Sound(), locks: 2, lease: lease, short: short, room: room}
	}
	requireSound(t, 500_000, bounds(3, 2, 2), bounds(2, 1, 2), bounds(3, 2, 3))
}

// Three messages under way can be a renewal, a shortening and what B hears; a third Lock takes over for a second time.
func TestSoundProtocol_HasNoTwoHoldersAndNoLostWaiter_RetentionWithMoreUnderWay(t *testing.T) {
	requireSound(t, 1_000_000,
		&retains{rules: Sound(), locks: 2, lease: 2, short: 1, room: 3},
		&retains{rules: Sound(), locks: 2, lease: 3, short: 1, room: 2},
		&retains{rules: Sound(), locks: 3, lease: 3, short: 2, room: 2})
}

func TestRule_Retain_ALateShorteningDoesNotShorten_WithoutIt_TheNextOwnersHoldEndsUnderIt(t *testing.T) {
	r := Sound()
	r.RetainedPass = false
	requireFault(t, oneRetainer(r), TwoInside)
}

func TestRule_Retain_TrustIsCutBeforeTheShorteningIsSent_WithoutIt_ATakeoverTrustsWhatIsGone(t *testing.T) {
	r := Sound()
	r.ShortenFirst = false
	requireFault(t, oneRetainer(r), TwoInside)
}

func TestRule_Retain_AnAnswerFromBeforeTheShorteningIsIgnored_WithoutIt_ItRestoresTrustThatIsGone(t *testing.T) {
	r := Sound()
	r.IgnoreOlder = false
	requireFault(t, oneRetainer(r), TwoInside)
}

func TestRule_Retain_ATakeoverHasTheTrustThatIsLeft_WithoutIt_ItStaysInsidePastTheLease(t *testing.T) {
	r := Sound()
	r.TakeoverTrust = false
	requireFault(t, oneRetainer(r), TwoInside)
}

func TestRule_Retain_AGrantThatIsGivenBackIsNotTakenOver_WithoutIt_ItsReleaseLetsAnotherInBesideTheOwner(t *testing.T) {
	r := Sound()
	r.ReleaseIsFinal = false
	requireFault(t, oneRetainer(r), TwoInside)
}

func TestRule_Retain_ARetainedGrantHasAShortLease_WithoutIt_ADeadClientKeepsOthersWaitingForAWholeOne(t *testing.T) {
	r := Sound()
	r.ShortRetention = false
	requireFault(t, oneRetainer(r), LostWaiter)
}

func TestRule_Retain_ARetainedGrantStaysShort_WithoutIt_ALateRequestOfADeadClientLengthensIt(t *testing.T) {
	r := Sound()
	r.StaysShort = false
	requireFault(t, oneRetainer(r), LostWaiter)
}

func TestRule_Wanted_AHolderThatWasToldDoesNotRetain_WithoutIt_AWaiterIsNotServedAtTheUnlock(t *testing.T) {
	r := Sound()
	r.WantedKept = false
	requireFault(t, oneRetainer(r), LostWaiter)
}

func TestRule_Wanted_AHeartbeatRepeatsIt_WithoutIt_OneLostMessageKeepsAWaiterOut(t *testing.T) {
	r := Sound()
	r.WantedRepeated = false
	requireFault(t, oneRetainer(r), LostWaiter)
}

func TestRule_Wanted_ARenewalsAnswerSaysIt_WithoutIt_AClientThatHearsAnswersOnlyNeverGivesBack(t *testing.T) {
	r := Sound()
	r.WantedAnswered = false
	requireFault(t, oneRetainer(r), LostWaiter)
}
