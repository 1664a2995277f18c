package memlock

import (
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
)

func TestIdempotence(t *testing.T) {
	for _, tc := range []struct{ name, script string }{
		{"ARepeatedRequest_HasTheSameGrant_AndIsRenewedByIt", `
			X a: granted
			wait 9s: ok
			X a: granted
			wait 9s: ok
			renew a 1s: ok`},
		{"ARepeatedRequestThatWaits_WaitsOnce", `
			X a: granted
			X b: queued
			X b: queued
			X b try: held
			release a: ok; b granted
			release b: ok
			X c: granted`},
		{"AReleasedRequest_IsGone", `
			X a: granted
			release a: ok
			release a: gone
			renew a 1s: gone
			X a: gone
			X b: granted`},
		{"AnUndoneRequest_IsGone_AlsoIfItHasNeverCome", `
			X a: granted
			undo a: ok
			undo a: ok
			undo b: ok
			X a: gone
			X b: gone
			wait 59s: ok
			X a: gone
			X b: gone
			undo b: ok
			wait 59s: ok
			X b: gone
			wait 1s: ok
			X b: granted`},
		{"AnExpiredRequest_TakesNothingAnyMore", `
			X a: granted
			wait 10s: ok
			X a: expired
			X b: granted
			X a: taken`},
		{"TheTomb_StandsAsLongAsTheLease", `
			X a: granted
			release a: ok
			wait 9999ms: ok
			X a: gone
			wait 1ms: ok
			X a: granted`},
		{"TheTomb_StandsAsLongAsTheLongestLeaseThatItWasRenewedFor", `
			X a: granted
			renew a 60s: ok
			release a: ok
			wait 59s: ok
			X a: gone
			wait 1s: ok
			X a: granted`},
		{"Undo_TakesAwayWhatWaits", `
			X a: granted
			X b: queued
			undo b: ok; b gone
			release a: ok
			X c: granted`},
		{"Undo_TakesAwayWhatWasKept", `
			X a: granted
			keep a 5s: ok
			X b: queued
			undo a: ok; b granted`},
	} {
		t.Run(tc.name, func(t *testing.T) { play(t, tc.script) })
	}
}

func TestHolds(t *testing.T) {
	for _, tc := range []struct{ name, script string }{
		{"ALease_EndsAtItsInstant_NotBefore", `
			X a lease=5s: granted
			X b: queued
			wait 4999ms: ok
			wait 1ms: ok; b granted
			renew a 5s: taken
			release a: taken`},
		{"AnExpiredRead_IsTakenByAWriterOnly", `
			R a lease=5s: granted
			R b lease=8s: granted
			X c: queued
			wait 5s: ok
			renew a 5s: expired
			wait 3s: ok; c granted
			renew b 5s: taken`},
		{"Renewal_LengthensAndNeverShortens", `
			X a: granted
			renew a 20s: ok
			renew a 1s: ok
			wait 19s: ok
			renew a 2s: ok`},
		{"Renewal_OfWhatExpired_RevivesNothing", `
			X a: granted
			wait 10s: ok
			renew a 10s: expired
			X b: granted`},
		{"Release_ByAnotherHold_IsRefusedAndChangesNothing", `
			X a: granted
			X b: queued
			release b: gone
			release c: taken
			release a: ok; b granted`},
		{"Keep_HoldsTheLockForThatLong_AndCannotBeRenewed", `
			X a: granted
			X b: queued
			keep a 15s: ok
			renew a 60s: gone
			release a: gone
			keep a 60s: gone
			X a: gone
			wait 14s: ok
			wait 1s: ok; b granted
			X a: gone`},
		{"Keep_ShortensTheLease", `
			X a: granted
			keep a 2s: ok
			wait 2s: ok
			X b: granted`},
		{"LockDelay_AfterTheEndOfTheLease_KeepsEverybodyOut", `
			X a owner=A lease=5s delay=3s: granted
			X b: queued
			wait 5s: ok
			X c owner=A try: held
			renew a 5s: expired
			release a: expired
			X a owner=A: expired
			wait 2999ms: ok
			wait 1ms: ok; b granted
			renew a 5s: taken`},
		{"LockDelay_OfOneHold_LeavesTheOwnersOtherHolds", `
			X a owner=A lease=5s delay=3s: granted
			X b owner=A lease=20s: granted
			wait 6s: ok
			X c owner=A lease=1s: granted
			release b: ok
			X d owner=B: queued
			wait 2s: ok; d granted`},
		{"LockDelay_IsNotForAReleaseNorForAnUndo", `
			X a delay=60s: granted
			X b delay=60s: queued
			release a: ok; b granted
			undo b: ok
			X c: granted`},
		{"LockDelay_AfterABreak_EndsWithTheSecond", `
			X a delay=60s: granted
			X b: queued
			break a: ok
			renew a 5s: broken
			release a: broken
			break a: ok; b granted
			renew a 5s: broken`},
		{"LockDelay_IsOverridenByAnUndo", `
			X a lease=5s delay=60s: granted
			wait 5s: ok
			X b: queued
			undo a: ok; b granted`},
		{"LockDelay_OfARead_LetsReadersIn", `
			R a lease=5s delay=3s: granted
			wait 5s: ok
			R b: granted
			X c: queued
			release b: ok
			wait 3s: ok; c granted`},
		{"Break_EndsAllHoldsOfTheOwner_AndOfNobodyElse", `
			R a owner=A: granted
			R b owner=A: granted
			R c: granted
			X w: queued
			break a: ok
			renew a 1s: broken
			release b: broken
			X a: broken
			renew c 1s: ok
			release c: ok; w granted`},
		{"Break_LetsInWhoWaits", `
			X a: granted
			X b: queued
			break a: ok; b granted
			release a: broken`},
		{"Break_OfAnUpgradedOwner_LeavesNothingForItsOtherRequests", `
			U a owner=A: granted
			R c: granted
			X b owner=A: queued
			break a: ok
			release c: ok; b granted`},
		{"Break_WithoutAHolder_IsNotHeld_AndWithAnotherTokenHeld", `
			break a: free
			X a: granted
			break b: held
			renew a 1s: ok`},
		{"Requeue_GivesTheLockToTheNext_AndQueuesBehind", `
			X a: granted
			X b: queued
			requeue a X c: queued; b granted
			release b: ok; c granted`},
		{"Requeue_WithNobodyWaiting_HasItAtOnce", `
			X a: granted
			requeue a X b: granted
			renew a 1s: gone`},
		{"Requeue_Refused_LeavesTheHold", `
			S a w=1/2: granted
			S b w=1/2: granted
			requeue a S c w=1/3: conflict
			requeue a X d try: unsupported
			renew a 10s: ok
			release b: ok
			requeue a S e w=1/3: granted`},
		{"Requeue_OfWhatIsLost_TakesNothing", `
			X a: granted
			wait 10s: ok
			requeue a X b: expired
			X c try: granted`},
		{"Requeue_Repeated_HasTheSameGrant", `
			X a: granted
			requeue a X b: granted
			requeue a X b: granted
			release b: ok`},
		{"Requeue_OfAReaderAsAWriter_IsNoDeadlock", `
			R a owner=A: granted
			R b: granted
			requeue a X c owner=A: queued
			release b: ok; c granted`},
		{"Requeue_AsAWriterWhoseReadWouldBeLetIn_IsADeadlock_AndLeavesTheHold", `
			X a: granted
			R b owner=A: queued
			requeue a X c owner=A: deadlock
			release a: ok; b granted`},
	} {
		t.Run(tc.name, func(t *testing.T) { play(t, tc.script) })
	}
}

func TestRenewal_RefreshesWhatOperatorsSee(t *testing.T) {
	s := newState(0)
	r := &driver.Request{Key: key, ID: "a", Owner: "first", Lease: time.Minute, Tokens: 4}
	if _, err := s.acquire(epoch, r); err != nil {
		t.Fatal(err)
	}
	err := s.renew(epoch, &driver.Renewal{Key: key, ID: "a", Lease: time.Minute, Owner: "third", Label: "l", Pass: 2})
	if err != nil {
		t.Fatal(err)
	}
	first := s.records[ref{key, "a"}].block.first
	if e := s.locks[key].heldBy(demand{}); e.Owner != "third" || e.Token != first+2 ||
		e.Until != epoch.Add(time.Minute) {
		t.Errorf("the holder is described as %+v, want owner third, token %d", e, first+2)
	}
	if h := s.locks[key].info().Holders[0]; h.Owner != "third" || h.Label != "l" || h.Token != first {
		t.Errorf("the holder is listed as %+v, want owner third, label l, token %d", h, first)
	}
	if _, err := s.breakHolds(epoch, key, first+3); err != nil {
		t.Errorf("Break with the block's last token: %v, want nil", err)
	}
}

func TestMemory_IsGivenBack(t *testing.T) {
	st := play(t, `
		X a: granted
		X b: queued
		undo b: ok; b gone
		undo c: ok
		release a: ok
		X d: granted
		wait 10s: ok
		wait 60s: ok`)
	s := st.state
	n := len(s.locks) + len(s.records) + len(s.leases) + len(s.graves.tombs) + len(s.graves.agenda) + s.queued
	if n != 0 {
		t.Errorf("%d entries are left of nothing: %+v", n, s)
	}
}
