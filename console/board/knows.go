package board

import "github.com/interlock-go/interlock/driver"

// Knows says which parts of a board the engine can fill, and why not where it cannot.
type Knows struct {
	List    Knowledge `json:"list"`    // which locks are in use
	Waiters Knowledge `json:"waiters"` // who waits
	Since   Knowledge `json:"since"`   // since when a lock is held
	Until   Knowledge `json:"until"`   // when a hold ends unless it is renewed
	Token   Knowledge `json:"token"`   // the fencing token of a hold
	Break   Knowledge `json:"break"`   // a hold can be ended from outside
	Latch   Knowledge `json:"latch"`   // there are latches, whose count can be asked for by name
}

// Knowledge is one part of [Knows].
type Knowledge struct {
	OK  bool   `json:"ok"`  // the engine can
	Why string `json:"why"` // why not: one clause, in the engine's words where it has any
}

// Why texts of what no engine has words for.
const (
	whyNoSince   = "this engine does not tell since when a lock is held"
	whyNoToken   = "this engine does not tell fencing tokens"
	whyNoSession = "a hold lasts as long as its client's session, so no end is known"
	whyNoProcess = "a hold lasts as long as its process, so no end is known"
)

// knowledge is what the traits say. Since and Token depend on what is found, see seen.
func knowledge(t driver.Traits) Knows {
	yes := Knowledge{OK: true}
	k := Knows{
		List: ability(t, driver.Holders), Waiters: ability(t, driver.Waiters), Since: yes, Until: yes, Token: yes,
		Break: ability(t, driver.Breaking), Latch: yes,
	}
	switch t.Lifetime {
	case driver.Leases:
	case driver.Sessions:
		k.Until = Knowledge{Why: whyNoSession}
	case driver.Process:
		k.Until = Knowledge{Why: whyNoProcess}
	}
	if reason, lacks := t.LackingKind(driver.KindLatch); lacks {
		k.Latch = Knowledge{Why: reason}
	}
	return k
}

func ability(t driver.Traits, a driver.Ability) Knowledge {
	reason, lacks := t.Lacking(a)
	return Knowledge{OK: !lacks, Why: reason}
}

// mayNot adds that this program breaks no holds, although the engine could.
func (k *Knows) mayNot(why string) {
	if why != "" && k.Break.OK {
		k.Break = Knowledge{Why: why}
	}
}

// seen corrects what only the locks themselves show: no trait says whether an engine tells instants and tokens. While
// nobody holds anything, nothing is missing.
func (k *Knows) seen(locks []Lock) {
	holders, since, token := false, false, false
	for i := range locks {
		for j := range locks[i].Holders {
			h := &locks[i].Holders[j]
			holders, since, token = true, since || !h.Since.IsZero(), token || h.Token != 0
		}
	}
	if holders && !since {
		k.Since = Knowledge{Why: whyNoSince}
	}
	if holders && !token {
		k.Token = Knowledge{Why: whyNoToken}
	}
}
