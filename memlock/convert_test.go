package memlock

import (
	"strings"
	"testing"
)

func TestConvert(t *testing.T) {
	for _, tc := range []struct{ name, script string }{
		{"AnUpgrade_WaitsForTheOtherReaders_AndKeepsNewOnesOut", `
			U u: granted
			R a: granted
			X up beside=u: queued
			R b try: held
			R c: queued
			release a: ok; up granted
			release up: ok; c granted
			R d: granted
			X w try: held
			release u: ok`},
		{"AnUpgrade_GoesBeforeAWriterThatWaits", `
			U u: granted
			X w: queued
			X up beside=u: granted
			release u: ok
			release up: ok; w granted`},
		{"AnUpgrade_MintsANewToken_AndWhatComesAfterHasIt", `
			U u: granted
			X up beside=u: granted
			R r beside=u: granted`},
		{"AnUpgrade_WhoseReadIsReleased_IsRefused", `
			U u: granted
			R a: granted
			X up beside=u: queued
			release u: ok; up gone
			release a: ok`},
		{"AnUpgrade_WhoseReadIsBroken_IsRefused", `
			U u: granted
			R a: granted
			X w: queued
			X up beside=u: queued
			break u: ok; up broken
			X up beside=u: broken
			release a: ok; w granted`},
		{"AnUpgrade_WhoseReadRunsOut_IsRefused", `
			U u lease=2s: granted
			R a: granted
			X up beside=u: queued
			wait 3s: ok; up expired`},
		{"AnUpgrade_OfAKeptRead_IsRefused", `
			U u: granted
			R a: granted
			X up beside=u: queued
			keep u 5s: ok; up gone`},
		{"AnUpgrade_ThatIsUndone_LeavesTheRead", `
			U u: granted
			R a: granted
			X up beside=u: queued
			R b: queued
			undo up: ok; up gone; b granted
			renew u 10s: ok
			X again beside=u: queued`},
		{"AnUpgrade_OfANamedOwner", `
			U u owner=A: granted
			R r owner=A: granted
			X w: queued
			X up owner=A beside=u: granted`},
		{"APlainReader_IsNotUpgraded", `
			R a: granted
			R b: granted
			X up beside=a: deadlock
			X up try beside=a: deadlock
			U u beside=a: granted
			X up beside=u: queued
			release b: ok; up granted`},
		{"AReader_DoesNotWaitForAnothersUpgradeableRead", `
			R a: granted
			U u: granted
			U v beside=a: deadlock`},
		{"AWriter_ReadsBesideItsWrite_AndNobodyGetsInBetween", `
			X w: granted
			X v: queued
			R r: queued
			R s beside=w: granted
			release w: ok
			R t try: held
			release s: ok; v granted
			release v: ok; r granted`},
		{"AnotherReadBesideARead_BypassesTheQueue", `
			R a: granted
			X w: queued
			R b beside=a: granted
			release a: ok
			release b: ok; w granted`},
		{"BesideNothing", `
			R a beside=none: expired
			R b: granted
			X w: queued
			R c beside=w: gone
			release b: ok; w granted
			release w: ok
			R d beside=w: gone`},
		{"ACopy_IsAnsweredTheSame", `
			U u: granted
			X up beside=u: granted
			X up beside=u: granted
			R a: queued
			release up: ok; a granted
			X up beside=u: gone`},
		{"Break_EndsBothHolds", `
			U u: granted
			X up beside=u: granted
			R a: queued
			break up: ok; a granted
			renew u 10s: broken
			renew up 10s: broken`},
	} {
		t.Run(tc.name, func(t *testing.T) { play(t, tc.script) })
	}
}

func TestConvert_ChangesTheTokenWithAnUpgradeOnly(t *testing.T) {
	st := play(t, `
		X w: granted
		R r beside=w: granted
		U u beside=w: granted`)
	block := func(id string) block { return st.state.records[ref{key, id}].block }
	write := block("w")
	if block("r") != write || block("u") != write {
		t.Errorf("re-entry has %+v and %+v, want %+v", block("r"), block("u"), write)
	}
	for _, step := range []string{"release w", "X up beside=u", "R s beside=r"} {
		st.step(t, strings.Fields(step))
	}
	if block("up").first <= write.first || block("up").nonce == write.nonce {
		t.Errorf("the upgrade has %+v after %+v", block("up"), write)
	}
	if block("s") != block("up") {
		t.Errorf("a read after the upgrade has %+v, want %+v", block("s"), block("up"))
	}
}
