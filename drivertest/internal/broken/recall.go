package broken

import (
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/drivertest"
)

// Recalls and retention, and their defects: who is told that a lock is wanted, and what a renewal of a lock that nobody
// holds does.

// The defects of those who tell a holder that another wants its lock.
var (
	WaitsTellNobody   = Defect{"a holder is not told that another waits for its lock", drivertest.Recalling}
	TriesTellNobody   = Defect{"a refused try does not tell the holder that the lock is wanted", drivertest.Recalling}
	RefusalsHideIt    = Defect{"a refusal does not say that the holder may give way", drivertest.Recalling}
	RefusalsAllSayIt  = Defect{"each refusal says that the holder may give way", drivertest.Recalling}
	AnswersTellAlways = Defect{"the answer to each renewal says that the lock is wanted", drivertest.Recalling}
	AnswersTellNobody = Defect{"the answer to a renewal does not say that another waits", drivertest.Recalling}
	WaitedHearNothing = Defect{"who has waited for its lock is not told that the next one waits", drivertest.Recalling}
	TellsWhoWasInside = Defect{
		"who has released is told that the lock of the next holder is wanted", drivertest.Recalling,
	}
)

// The defects of renewals of what nobody holds.
var (
	RetainedIsNotShort = Defect{"a renewal of what nobody holds does not shorten", drivertest.Recalling}
	ShortWakesNobody   = Defect{
		"a lease that is shortened lets no waiter in until the longer one is over", drivertest.Recalling,
	}
	LateOneShortens = Defect{"a late renewal shortens the lease of a later owner", drivertest.Recalling}
	LateOneForgets  = Defect{
		"a late renewal has the engine forget that a later owner was there", drivertest.Recalling,
	}
	LateOneLengthens = Defect{"a late renewal lengthens the lease of what nobody holds", drivertest.Recalling}
	CopyLengthens    = Defect{
		"a late copy of the acquire lengthens the lease of what nobody holds", drivertest.Recalling,
	}
	RetainedIsHeld  = Defect{"what is retained is listed as held", drivertest.Recalling}
	RetainedForGood = Defect{"what was retained stays so when a later owner holds it", drivertest.Recalling}
)

func recalls() []Defect {
	return []Defect{
		WaitsTellNobody, TriesTellNobody, RefusalsHideIt, RefusalsAllSayIt, AnswersTellAlways, AnswersTellNobody,
		WaitedHearNothing, TellsWhoWasInside, RetainedIsNotShort, ShortWakesNobody, LateOneShortens, LateOneForgets,
		LateOneLengthens, CopyLengthens, RetainedIsHeld, RetainedForGood,
	}
}

// recall tells the holders of l who may retain it that another wants it.
func (s *Store) recall(l *lock, by *driver.Request) {
	if by.Try && s.defect == TriesTellNobody || !by.Try && s.defect == WaitsTellNobody {
		return
	}
	for _, h := range l.holders {
		if h.r.Retains && !h.kept && (!h.waited || s.defect != WaitedHearNothing) {
			h.tellWanted()
		}
	}
	if l.former != nil && s.defect == TellsWhoWasInside {
		l.former.tellWanted()
	}
}

// recallByAnswer tells who renews h that another waits.
func (s *Store) recallByAnswer(l *lock, h *entry) {
	if len(l.waiters) > 0 && s.defect != AnswersTellNobody || s.defect == AnswersTellAlways {
		h.tellWanted()
	}
}

// tellWanted has a goroutine of its own, which ends with the call: whoever is told may ask the store something.
func (e *entry) tellWanted() {
	if tell := e.r.Wanted; tell != nil {
		go tell()
	}
}

// isLate reports whether a renewal says what is known to be over: an owner came after it, or its own has gone.
func (s *Store) isLate(h *entry, r *driver.Renewal) bool {
	return r.Pass < h.pass || h.retained && !r.Retained && (r.Pass == h.pass || s.defect == RetainedForGood)
}

// saysRetains reports whether a refusal by h says that it may give way.
func (s *Store) saysRetains(h *entry) bool {
	return h.r.Retains && s.defect != RefusalsHideIt || s.defect == RefusalsAllSayIt
}

// prolong makes h last as r says, and takes in what r tells of its owner.
func (s *Store) prolong(h *entry, r *driver.Renewal) {
	late := s.isLate(h, r)
	until := time.Now().Add(r.Lease)
	switch {
	case h.retained && late && s.defect != LateOneLengthens:
		return
	case r.Retained && (!late || s.defect == LateOneShortens) && s.defect != RetainedIsNotShort:
		h.until = until
	case until.After(h.until) && (s.defect != RenewDoesNothing || h.r.Retains) ||
		s.defect == RenewShortens && !h.r.Retains:
		h.until = until
	}
	if !late || s.defect == LateOneForgets {
		h.pass = r.Pass
	}
	if late {
		return
	}
	h.retained = r.Retained
	if r.Owner != "" || r.Retained {
		h.r.Owner, h.r.Label = r.Owner, r.Label
	}
}

// copied is called when the acquire of h, who holds, is asked for again.
func (s *Store) copied(l *lock, h *entry) {
	if until := time.Now().Add(h.r.Lease); h.retained && until.After(h.until) && s.defect == CopyLengthens {
		h.until = until
		s.arm(l)
	}
}
