package handoff

// Rules are the rules of the protocol as switches. All on is the protocol as it is; each one off is a protocol that
// looks sensible and breaks, which the tests show. The numbers are those of the list in the package documentation.
type Rules struct {
	// HoldIDs (1): renewal and release match the id of one hold. Off: they match whatever hold its owner has.
	HoldIDs bool
	// NoReentry (2): an anonymous owner never re-enters through the engine. Off: it does, like a named one.
	NoReentry bool
	// NamedStay (2): a named owner's hold, which others may re-enter through the engine, is never passed on locally.
	NamedStay bool
	// Tombstones (3a): an id that was released or undone is refused from then on. Off: the engine forgets it.
	Tombstones bool
	// LongTombstones (3a): a tombstone outlives every copy of the request. Off: it ends one tick too early.
	LongTombstones bool
	// FreshIDs (3b): every acquisition has an id of its own. Off: a client has one id and uses it again.
	FreshIDs bool
	// IgnoreStale (3c): a holder ignores a "queued" that was under way when it was granted. Off: it believes it.
	IgnoreStale bool
	// RetryUntilKnown (3d): release and undo are sent again until they are confirmed. Off: they are sent once.
	RetryUntilKnown bool
	// UndoCancelled (3d): a cancelled acquire is undone. Off: it is forgotten.
	UndoCancelled bool
	// UndoRetried (3d): a try that was sent more than once and is refused is undone, because the refusal is the answer
	// to one copy only. Off: the refusal is believed.
	UndoRetried bool
	// RepairingHeartbeat (4): a waiter's heartbeat evicts the expired and grants the head. Off: it refreshes the waiter
	// only.
	RepairingHeartbeat bool
	// ShortClaim (5): a pushed grant lasts for the claim time until it is claimed. Off: for the whole lease.
	ShortClaim bool
	// PassOverSilent (5): a waiter that has been silent for the claim time is granted nothing. Off: it is,
	// for as long as it has a place.
	PassOverSilent bool
	// TrustClaim (6): a pushed grant is trusted for the claim time. Off: for the whole lease.
	TrustClaim bool
	// TrustGrant (6): a pushed grant is trusted from the engine's instant of granting. Off: from its receipt.
	TrustGrant bool
	// TrustOffset (6): the engine's clock is compared with the instant at which an earlier request was sent. Off: with
	// the instant at which its answer came in.
	TrustOffset bool
	// BlockIfBehind (7): a block of tokens is granted only if the last token is behind the clock. Off: always.
	BlockIfBehind bool
	// StoreBlockEnd (7): the last token of the block is stored. Off: the first.
	StoreBlockEnd bool
	// PassDeadline (13): the receiver of a local pass inherits the deadline, and there must be trust enough. Off: its
	// lease begins at the pass.
	PassDeadline bool
	// NoPassAfterLoss (13): a lost hold is not passed on. Off: its unlock passes it on like any other.
	NoPassAfterLoss bool
	// LossDetaches (14): the waiters behind a hold inside the process go to the engine when it is lost. Off: they
	// wait for its unlock.
	LossDetaches bool
	// TrustSent (trust window): a lease is trusted from before its request was sent. Off: from the answer.
	TrustSent bool
	// LossIsFinal (trust window): a renewal that is answered after the deadline changes nothing. Off: it revives the
	// hold.
	LossIsFinal bool
	// RetainedPass (retain): a shortening of an earlier pass than the engine has heard of does
	// not shorten. Off: it does.
	RetainedPass bool
	// ShortenFirst (retain): a client cuts its trust before it sends a shortening. Off: when that is answered.
	ShortenFirst bool
	// IgnoreOlder (retain): the answer to what was sent before the last shortening extends no trust. Off: it does.
	IgnoreOlder bool
	// TakeoverTrust (retain): a Lock that takes a retained grant over has the trust that is left. Off: a whole lease.
	TakeoverTrust bool
	// ReleaseIsFinal (retain): a grant that is being given back is not taken over. Off: it is, until that is confirmed.
	ReleaseIsFinal bool
	// ShortRetention (retain): a retained grant is renewed for a short lease. Off: for that of the hold.
	ShortRetention bool
	// StaysShort (retain): what was sent before the shortening and arrives after it does not lengthen the grant. Off: a
	// late renewal, or a late copy of the acquire, makes its lease a whole one again.
	StaysShort bool
	// WantedKept (wanted): a holder that was told that another wants its lock does not retain it. Off: it forgets.
	WantedKept bool
	// WantedRepeated (wanted): each heartbeat of a waiter has the holder told. Off: the first request does, once.
	WantedRepeated bool
	// WantedAnswered (wanted): while somebody waits the answer to a renewal says so. Off: only
	// messages of their own do.
	WantedAnswered bool
}

// Sound returns the protocol as it is: every rule on.
func Sound() Rules {
	return Rules{
		HoldIDs: true, NoReentry: true, NamedStay: true, Tombstones: true, LongTombstones: true, FreshIDs: true,
		IgnoreStale: true, RetryUntilKnown: true, UndoCancelled: true, UndoRetried: true, RepairingHeartbeat: true,
		ShortClaim: true, PassOverSilent: true, TrustClaim: true, TrustGrant: true, TrustOffset: true,
		BlockIfBehind: true, StoreBlockEnd: true, PassDeadline: true, NoPassAfterLoss: true, LossDetaches: true,
		TrustSent: true, LossIsFinal: true,
		RetainedPass: true, ShortenFirst: true, IgnoreOlder: true, TakeoverTrust: true,
		ReleaseIsFinal: true, ShortRetention: true, StaysShort: true, WantedKept: true, WantedRepeated: true,
		WantedAnswered: true,
	}
}
