package handoff

import "testing"

// oneProcess has time enough for every fault that a broken rule causes inside a process.
func oneProcess(r Rules) *locals { return &locals{rules: r, lease: 2, room: 2} }

// oneNamedOwner is the same with an owner that re-enters through the engine.
func oneNamedOwner(r Rules) *locals { return &locals{rules: r, named: true, lease: 2, room: 2} }

func TestSoundProtocol_HasNoTwoHoldersAndNoLostWaiter_LocalHandoffs(t *testing.T) {
	bounds := func(lease uint8, room int) *locals { return &locals{rules: Sound(), lease: lease, room: room} }
	requireSound(t, 500_000, bounds(2, 2), bounds(1, 2), bounds(3, 2))
}

func TestSoundProtocol_HasNoTwoHoldersAndNoLostWaiter_NamedOwner(t *testing.T) {
	bounds := func(lease uint8, room int) *locals {
		return &locals{rules: Sound(), named: true, lease: lease, room: room}
	}
	requireSound(t, 500_000, bounds(2, 2), bounds(1, 2), bounds(3, 2))
}

func TestRule_2_AnonymousOwnersDoNotReenter_WithoutIt_ADelayedRequestGetsInBesideTheReceiver(t *testing.T) {
	r := Sound()
	r.NoReentry = false
	requireFault(t, oneProcess(r), TwoInside)
}

func TestRule_2_NamedOwnersAreNotPassedLocally_WithoutIt_AReentryGetsInBesideTheReceiver(t *testing.T) {
	r := Sound()
	r.NamedStay = false
	requireFault(t, oneNamedOwner(r), TwoInside)
}

func TestRule_13_AReceiverInheritsTheDeadline_WithoutIt_ItStaysInsidePastTheLease(t *testing.T) {
	r := Sound()
	r.PassDeadline = false
	requireFault(t, oneProcess(r), TwoInside)
}

func TestRule_13_ALostHoldIsNotPassedOn_WithoutIt_ItsReceiverIsBesideTheNextHolder(t *testing.T) {
	r := Sound()
	r.NoPassAfterLoss = false
	requireFault(t, oneProcess(r), TwoInside)
}

func TestRule_14_LossDetachesTheQueue_WithoutIt_AWaiterWaitsForAnUnlockThatNeverComes(t *testing.T) {
	r := Sound()
	r.LossDetaches = false
	requireFault(t, oneProcess(r), LostWaiter)
}
