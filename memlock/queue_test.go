package memlock

import (
	"testing"

	"github.com/interlock-go/interlock/driver"
)

func TestQueue(t *testing.T) {
	for _, tc := range []struct{ name, script string }{
		{"AFreeLock_IsGrantedAtOnce", `
			X a: granted`},
		{"WaitersOfAMutex_GetItInTurn", `
			X a: granted
			X b: queued
			X c: queued
			release a: ok; b granted
			release b: ok; c granted
			release c: ok`},
		{"ATry_FailsWhenHeld_AndQueuesNowhere", `
			X a: granted
			X b try: held
			release a: ok
			X c: granted`},
		{"ATry_FailsBehindWaiters_AlthoughItWouldFit", `
			S a w=2/3: granted
			S b w=2/3: queued
			S c w=1/3 try: held
			S d w=1/3: queued
			release a: ok; b granted; d granted`},
		{"Readers_ShareAndAWriterExcludesAll", `
			R a: granted
			R b: granted
			X w: queued
			release a: ok
			release b: ok; w granted
			R c: queued
			release w: ok; c granted`},
		{"AReader_DoesNotOvertakeAWaitingWriter", `
			R a: granted
			X w: queued
			R b: queued
			R c try: held
			release a: ok; w granted
			release w: ok; b granted`},
		{"ReadersBehindAWriter_AreLetInTogether", `
			X w: granted
			R a: queued
			R b: queued
			X v: queued
			R c: queued
			release w: ok; a granted; b granted
			release a: ok
			release b: ok; v granted
			release v: ok; c granted`},
		{"ABigRequest_IsNotOvertakenBySmallOnes", `
			S a w=2/4: granted
			S b w=4/4: queued
			S c w=1/4: queued
			release a: ok; b granted
			release b: ok; c granted`},
		{"AWriter_WaitsForAllPermits", `
			S a w=1/2: granted
			X w: queued
			release a: ok; w granted
			S b w=1/2: queued
			release w: ok; b granted`},
		{"AnotherLimitWhileInUse_IsAConflict", `
			S a w=1/2: granted
			S b w=1/3: conflict
			R c: conflict
			release a: ok
			S b w=1/3: granted`},
		{"ARefusedTry_DoesNotFixTheLimit", `
			X a: granted
			S b w=1/2 try: held
			S c w=1/3: queued`},
		{"AWeightAboveTheLimit_IsAConflict", `
			S a w=4/3: conflict
			S b w=0/3: conflict
			S c w=1/-1: conflict`},
		{"ALeaseThatNeverWas_IsRefused", `
			X a lease=0s: unsupported
			U b w=1/3: unsupported`},
		{"AnUndoneWaiter_LetsInWhomItHeldUp", `
			R a: granted
			X w: queued
			R b: queued
			undo w: ok; w gone; b granted`},
	} {
		t.Run(tc.name, func(t *testing.T) { play(t, tc.script) })
	}
}

func TestReentry(t *testing.T) {
	for _, tc := range []struct{ name, script string }{
		{"ANamedOwner_IsLetInPastTheQueue", `
			X a owner=A: granted
			X b: queued
			X c owner=A: granted
			release a: ok
			release c: ok; b granted`},
		{"AnAnonymousOwner_Waits", `
			X a: granted
			X b: queued`},
		{"AGrant_LetsInTheOwnersOtherRequests", `
			X a: granted
			X b owner=A: queued
			X c: queued
			X d owner=A: queued
			release a: ok; b granted; d granted
			release d: ok
			release b: ok; c granted`},
		{"AWriter_MayRead_AndDowngradesByReleasingTheWrite", `
			X a owner=A: granted
			R b owner=A: granted
			R c: queued
			release a: ok; c granted
			X d owner=A: deadlock`},
		{"APlainReaderWhoWantsToWrite_IsADeadlockAtOnce", `
			R a owner=A: granted
			X b owner=A: deadlock
			X c owner=A try: deadlock
			S d w=1/2: conflict`},
		{"AQueuedWrite_IsRefusedOnceItsOwnerReads", `
			X a: granted
			R b owner=A: queued
			X c owner=A: queued
			release a: ok; b granted; c deadlock`},
		{"AReader_ReadsAgainPastAWaitingWriter", `
			R a owner=A: granted
			X w: queued
			R b owner=A: granted`},
		{"Permits_AreTakenAnewEachTime", `
			S a owner=A w=2/3: granted
			S b owner=A w=1/3: granted
			S c owner=A w=1/3: queued
			release a: ok; c granted`},
		{"PermitsWithinAnExclusiveHold_AreNoMoreThanThereAre", `
			X a owner=A: granted
			S b owner=A w=2/3: granted
			S c owner=A w=2/3: deadlock
			S d w=1/3: queued
			release a: ok; d granted`},
		{"AHoldReleasedWithKeep_LetsNobodyBackIn", `
			X a owner=A: granted
			keep a 5s: ok
			X b owner=A: queued
			wait 5s: ok; b granted`},
		{"AfterOneOfItsHoldsExpired_TheOwnerStillHasTheOther", `
			X a owner=A lease=5s: granted
			X b owner=A lease=9s: granted
			X c: queued
			wait 5s: ok
			renew a 5s: expired
			renew b 5s: ok
			wait 5s: ok; c granted`},
	} {
		t.Run(tc.name, func(t *testing.T) { play(t, tc.script) })
	}
}

func TestUpgradeableRead(t *testing.T) {
	for _, tc := range []struct{ name, script string }{
		{"IsBesideReaders_OneAtATime", `
			R a: granted
			U b: granted
			U c: queued
			R d: queued
			release b: ok; c granted; d granted`},
		{"UpgradesInFrontOfTheQueue_AndBlocksNewReaders", `
			U a owner=A: granted
			R b: granted
			X c: queued
			X d owner=A: queued
			R e: queued
			release b: ok; d granted
			release d: ok
			release a: ok; c granted
			release c: ok; e granted`},
		{"UpgradesAtOnceWhenAlone_AlsoPastWaiters", `
			U a owner=A: granted
			X c: queued
			X d owner=A: granted`},
		{"UpgradesOfOneOwner_AreLetInTogether", `
			U a owner=A: granted
			R b: granted
			X c owner=A: queued
			X d owner=A: queued
			release b: ok; c granted; d granted`},
		{"AQueuedWrite_BecomesAnUpgrade", `
			X a: granted
			R b: queued
			U c owner=A: queued
			X w: queued
			X d owner=A: queued
			release a: ok; b granted; c granted
			R e: queued
			release b: ok; d granted
			release d: ok
			release c: ok; w granted
			release w: ok; e granted`},
		{"ReleasedDuringTheUpgrade_LeavesAReaderWhoCannotWrite", `
			U a owner=A: granted
			R b owner=A: granted
			R c: granted
			X d owner=A: queued
			release a: ok; d deadlock`},
		{"KeptDuringTheUpgrade_LeavesAReaderWhoCannotWrite", `
			U a owner=A: granted
			R b owner=A: granted
			R c: granted
			X d owner=A: queued
			keep a 5s: ok; d deadlock`},
		{"OfAReader_IsARentryUnlessAnotherHasIt", `
			R a owner=A: granted
			U b owner=A: granted
			R c owner=C: granted
			U d owner=C: deadlock`},
	} {
		t.Run(tc.name, func(t *testing.T) { play(t, tc.script) })
	}
}

func TestUpgrade_MintsANewToken_AndTheReadKeepsItsOwn(t *testing.T) {
	st := play(t, `
		U a owner=A: granted
		X b owner=A: granted
		R c owner=A: granted`)
	all := st.state.records
	read, write, again := all[ref{key, "a"}], all[ref{key, "b"}], all[ref{key, "c"}]
	if write.block.first <= read.block.first || write.block.nonce == read.block.nonce {
		t.Errorf("the write has %+v after the read's %+v, want a larger token and another nonce", write.block,
			read.block)
	}
	if again.block != write.block {
		t.Errorf("a read within the write has %+v, want the write's %+v", again.block, write.block)
	}
}

func TestLimit_DescribesTheLockToOperators(t *testing.T) {
	st := play(t, `
		S a owner=A w=2/3: granted
		S b w=2/3: queued`)
	info := st.state.locks[key].info()
	if info.Limit != 3 || len(info.Holders) != 1 || len(info.Waiters) != 1 {
		t.Fatalf("got %+v, want a limit of 3, one holder and one waiter", info)
	}
	if h := info.Holders[0]; h.Weight != 2 || !h.Shared || h.Owner != "A" || h.Since != epoch {
		t.Errorf("got the holder %+v", h)
	}
	want := driver.Waiter{Weight: 2, Shared: true, Since: epoch, Position: 1}
	if w := info.Waiters[0]; w != want {
		t.Errorf("got the waiter %+v, want %+v", w, want)
	}
}
