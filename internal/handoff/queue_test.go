package handoff

import (
	"fmt"
	"testing"
)

// twoInQueue has time enough for every fault that a broken rule causes between two clients.
func twoInQueue(r Rules) *queues {
	return &queues{rules: r, clients: 2, crashes: 1, lease: 3, claim: 2, heartbeat: 2, room: 2}
}

// threeInQueue has a waiter behind a waiter.
func threeInQueue(r Rules) *queues {
	return &queues{rules: r, clients: 3, crashes: 1, lease: 3, claim: 1, heartbeat: 1, room: 2}
}

// silentInQueue has places that outlast a claim.
func silentInQueue(r Rules) *queues {
	return &queues{rules: r, clients: 2, crashes: 1, lease: 2, claim: 1, heartbeat: 3, room: 2}
}

func TestSoundProtocol_HasNoTwoHoldersNoOrphanAndNoLostWaiter_TwoInTheQueue(t *testing.T) {
	bounds := func(lease uint8, room int) *queues {
		return &queues{rules: Sound(), clients: 2, crashes: 2, lease: lease, claim: 2, heartbeat: 2, room: room}
	}
	requireSound(t, 300_000, bounds(3, 3), bounds(3, 2), bounds(4, 4))
}

func TestSoundProtocol_HasNoTwoHoldersNoOrphanAndNoLostWaiter_ThreeInTheQueue(t *testing.T) {
	bounds := func(crashes int, lease, claim, heartbeat uint8) *queues {
		return &queues{
			rules: Sound(), clients: 3, crashes: crashes, lease: lease, claim: claim, heartbeat: heartbeat, room: 2,
		}
	}
	requireSound(t, 400_000, bounds(2, 3, 2, 1), bounds(2, 2, 1, 1), bounds(2, 3, 2, 2))
}

// Places outlast a claim, as they do on the servers, and two of three die: the third is served within one claim all the
// same.
func TestSoundProtocol_OfManyDead_GrantsToOneAtMost_ThreeInTheQueue(t *testing.T) {
	bounds := func(crashes int, heartbeat uint8) *queues {
		return &queues{rules: Sound(), clients: 3, crashes: crashes, lease: 2, claim: 1, heartbeat: heartbeat, room: 2}
	}
	requireSound(t, 300_000, bounds(2, 2), bounds(1, 2), bounds(2, 3))
}

// What is at fault without a rule must be sound with it in the same bounds, or the fault says nothing of the rule.
func TestSoundProtocol_InTheBoundsThatShowARuleMissing_HasNoFault(t *testing.T) {
	for _, m := range []*queues{twoInQueue(Sound()), threeInQueue(Sound()), silentInQueue(Sound())} {
		t.Run(fmt.Sprint(m.clients, m.heartbeat), func(t *testing.T) {
			if underRace || testing.Short() {
				m.room = 1
			}
			requireSound(t, 1_000, m, m, m)
		})
	}
}

func TestRule_3a_UndoneWaitersAreTombstoned_WithoutIt_ALateHeartbeatLeavesAnOrphan(t *testing.T) {
	r := Sound()
	r.Tombstones = false
	requireFault(t, twoInQueue(r), Orphan)
}

func TestRule_3d_ACancelledWaiterIsUndone_WithoutIt_ThePushGoesToNobody(t *testing.T) {
	r := Sound()
	r.UndoCancelled = false
	requireFault(t, twoInQueue(r), Orphan)
}

func TestRule_3c_StaleQueuedIsIgnored_WithoutIt_AHolderIsPutOutOfALockThatItHolds(t *testing.T) {
	r := Sound()
	r.IgnoreStale = false
	requireFault(t, twoInQueue(r), FalseLoss)
}

func TestRule_4_AHeartbeatEvictsAndGrants_WithoutIt_AWaiterIsLostWhenTheHolderCrashes(t *testing.T) {
	r := Sound()
	r.RepairingHeartbeat = false
	requireFault(t, twoInQueue(r), LostWaiter)
}

func TestRule_5_APushedGrantIsAShortClaim_WithoutIt_ADeadWaiterKeepsTheOthersWaitingForALease(t *testing.T) {
	r := Sound()
	r.ShortClaim = false
	requireFault(t, threeInQueue(r), LostWaiter)
}

func TestRule_5_ASilentWaiterIsPassedOver_WithoutIt_TheDeadKeepTheOthersWaitingOneAfterTheOther(t *testing.T) {
	r := Sound()
	r.PassOverSilent = false
	requireFault(t, silentInQueue(r), LostWaiter)
}

func TestRule_6_APushedGrantIsTrustedForTheClaimTime_WithoutIt_AWholeLeaseMakesTwoHolders(t *testing.T) {
	r := Sound()
	r.TrustClaim = false
	requireFault(t, twoInQueue(r), TwoInside)
}

func TestRule_6_APushedGrantIsTrustedFromTheGrant_WithoutIt_ASlowPushMakesTwoHolders(t *testing.T) {
	r := Sound()
	r.TrustGrant = false
	requireFault(t, twoInQueue(r), TwoInside)
}

func TestRule_6_TheOffsetComesFromTheSending_WithoutIt_ASlowAnswerMakesTwoHolders(t *testing.T) {
	r := Sound()
	r.TrustOffset = false
	requireFault(t, twoInQueue(r), TwoInside)
}
