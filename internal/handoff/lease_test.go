package handoff

import "testing"

// smallLeases is large enough for every fault that a broken rule causes here.
func smallLeases(r Rules) *leases {
	return &leases{rules: r, clients: 2, requests: 2, lease: 2, horizon: 2, room: 2}
}

func TestSoundProtocol_HasNoTwoHoldersAndNoOrphan_TwoClientsTwice(t *testing.T) {
	bounds := func(horizon uint8, room int) *leases {
		return &leases{rules: Sound(), clients: 2, requests: 2, lease: 2, horizon: horizon, room: room}
	}
	requireSound(t, 300_000, bounds(2, 2), bounds(1, 2), bounds(2, 3))
}

func TestSoundProtocol_HasNoTwoHoldersAndNoOrphan_ThreeClients(t *testing.T) {
	bounds := func(lease, horizon uint8, room int) *leases {
		return &leases{rules: Sound(), clients: 3, requests: 1, lease: lease, horizon: horizon, room: room}
	}
	requireSound(t, 500_000, bounds(3, 2, 2), bounds(2, 1, 2), bounds(2, 2, 3))
}

func TestRule_1_ReleaseMatchesTheHoldID_WithoutIt_ALateReleaseFreesTheNextHold(t *testing.T) {
	r := Sound()
	r.HoldIDs = false
	requireFault(t, smallLeases(r), TwoInside)
}

func TestRule_3a_UndoneIDsAreTombstoned_WithoutIt_ALateAcquireLeavesAnOrphan(t *testing.T) {
	r := Sound()
	r.Tombstones = false
	requireFault(t, smallLeases(r), Orphan)
}

func TestRule_3a_TombstonesOutliveEveryCopy_WithoutIt_ALateAcquireLeavesAnOrphan(t *testing.T) {
	r := Sound()
	r.LongTombstones = false
	requireFault(t, smallLeases(r), Orphan)
}

func TestRule_3b_IDsAreNeverReused_WithoutIt_AnAnswerToTheOldRequestMakesTwoHolders(t *testing.T) {
	r := Sound()
	r.FreshIDs = false
	requireFault(t, smallLeases(r), TwoInside)
}

func TestRule_3d_ReleaseIsRetriedUntilKnown_WithoutIt_ALostReleaseLeavesAnOrphan(t *testing.T) {
	r := Sound()
	r.RetryUntilKnown = false
	requireFault(t, smallLeases(r), Orphan)
}

func TestRule_3d_ACancelledAcquireIsUndone_WithoutIt_ItsGrantIsAnOrphan(t *testing.T) {
	r := Sound()
	r.UndoCancelled = false
	requireFault(t, smallLeases(r), Orphan)
}

func TestRule_3d_ARefusedTryThatWasRetriedIsUndone_WithoutIt_ItsOtherCopyLeavesAnOrphan(t *testing.T) {
	r := Sound()
	r.UndoRetried = false
	requireFault(t, smallLeases(r), Orphan)
}

func TestRule_Trust_RunsFromBeforeTheRequest_WithoutIt_ASlowAnswerMakesTwoHolders(t *testing.T) {
	r := Sound()
	r.TrustSent = false
	requireFault(t, smallLeases(r), TwoInside)
}

func TestRule_Trust_LossIsFinal_WithoutIt_ALateRenewalMakesTwoHolders(t *testing.T) {
	r := Sound()
	r.LossIsFinal = false
	requireFault(t, smallLeases(r), TwoInside)
}
