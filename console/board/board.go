package board

import (
	"net/url"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// SchemaVersion is in every [Board]. It grows when a field changes its meaning; new fields do not change it.
const SchemaVersion = 1

// Board is what is known of an engine's locks. It is never changed once it was returned, so it may be shared; nobody
// else may change it either.
type Board struct {
	SchemaVersion int `json:"schemaVersion"` // the constant of that name
	// Taken is when the look ended that found Locks, by the clock of this process. It is zero if no look has succeeded.
	Taken time.Time `json:"taken,omitzero"`
	// Tried is when the last look ended, whether or not it succeeded.
	Tried  time.Time `json:"tried"`
	TookMs int64     `json:"tookMs"` // how long the last look took, in milliseconds
	// IntervalMs is the pause between two looks, in milliseconds. After a slow look it is four times as long as the
	// look.
	IntervalMs int64 `json:"intervalMs"`

	Engine   string        `json:"engine"`   // the name of the engine
	URL      string        `json:"url"`      // as Options.URL
	Prefix   string        `json:"prefix"`   // only locks whose names start with it are on the board
	Lifetime string        `json:"lifetime"` // what ends a hold whose client has vanished: lease, session or process
	Kinds    []driver.Kind `json:"kinds"`    // that the engine has
	Knows    Knows         `json:"knows"`    // what the engine can tell

	Truncated bool   `json:"truncated"` // there are more locks than these; Counts has those that were seen
	Error     string `json:"error"`     // why the last look failed; empty if it succeeded
	Err       error  `json:"-"`         // the same as a value, for errors.Is and errors.As; nil if it succeeded
	Stale     bool   `json:"stale"`     // Locks are those of an earlier look, at Taken

	Counts Counts `json:"counts"` // of all locks that were seen
	Locks  []Lock `json:"locks"`  // by name and kind

	Edges          []Edge     `json:"edges"`          // who waits for whom
	EdgesTruncated bool       `json:"edgesTruncated"` // there are more edges, and maybe cycles, than these
	Cycles         [][]string `json:"cycles"`         // owners; each waits for the next one, and the last for the first
	Events         []Event    `json:"events"`         // the latest, newest first; only a Poller has any
}

// Counts are numbers about all locks of a look.
type Counts struct {
	Held       int `json:"held"`       // locks that an owner holds
	Waiting    int `json:"waiting"`    // waiters, of all locks
	Retained   int `json:"retained"`   // locks that nobody holds, and a client keeps until another wants them
	Cooldown   int `json:"cooldown"`   // locks that nobody holds, and that stay closed for a while
	Unreadable int `json:"unreadable"` // locks that could not be read
	// OldestWaiterMs is how long the longest wait has lasted, in milliseconds, candidates of elections left out; 0 if
	// there is none or the engine does not tell. It compares the engine's clock with that of this process.
	OldestWaiterMs int64               `json:"oldestWaiterMs"`
	ByKind         map[driver.Kind]int `json:"byKind"` // locks of each kind that has any
}

// Lock is one lock that is held or waited for.
type Lock struct {
	ID      string      `json:"id"`              // kind/name, escaped for a path of a URL; see [ID]
	Kind    driver.Kind `json:"kind"`            // of the lock
	Name    string      `json:"name"`            // of the lock
	Limit   int         `json:"limit,omitempty"` // permits of a semaphore
	Holders []Holder    `json:"holders"`         // empty if the lock is only waited for
	Waiters []Waiter    `json:"waiters"`         // null if the engine does not tell; in the order of the queue

	Unreadable string `json:"unreadable,omitempty"` // why no more than kind and name is known
}

// Holder is an entry of a lock's holders. What the engine does not tell is absent.
type Holder struct {
	Client string `json:"client,omitempty"` // the name of its client: Options.ClientName
	Owner  string `json:"owner,omitempty"`  // the id of the owner
	Label  string `json:"label,omitempty"`  // what the owner shows; in an election the leader's value
	// Token is the first fencing token of the hold. In JSON it is a string: it can be larger than what JavaScript keeps
	// exact.
	Token  uint64    `json:"token,string,omitempty"`
	Weight int       `json:"weight,omitempty"` // permits that it holds
	Shared bool      `json:"shared"`           // others may hold the lock beside it
	Since  time.Time `json:"since,omitzero"`   // by the engine's clock
	Until  time.Time `json:"until,omitzero"`   // by the engine's clock, unless renewed

	Cooldown bool `json:"cooldown,omitempty"` // its owner is done, and it only keeps others out for a while
	Retained bool `json:"retained,omitempty"` // nobody holds it; Client keeps it until another wants it
	Named    bool `json:"named,omitempty"`    // Owner was named by the program, and may be in several processes
}

// Waiter is an entry of a lock's queue. What the engine does not tell is absent.
type Waiter struct {
	Client   string    `json:"client,omitempty"`   // these are as in Holder
	Owner    string    `json:"owner,omitempty"`    // the id of the owner
	Label    string    `json:"label,omitempty"`    // what the owner shows
	Weight   int       `json:"weight,omitempty"`   // permits that it wants
	Shared   bool      `json:"shared"`             // it wants to hold the lock beside others
	Since    time.Time `json:"since,omitzero"`     // by the engine's clock
	Position int       `json:"position,omitempty"` // 1 is next
	Named    bool      `json:"named,omitempty"`    // as in Holder
}

// ID returns the id of a lock: its kind and its name, escaped so that it can stand in the path of a URL.
func ID(kind driver.Kind, name string) string { return string(kind) + "/" + url.PathEscape(name) }

// LockOf converts what an engine tells about one lock. waitersKnown says that the engine tells who waits.
func LockOf(l driver.LockInfo, waitersKnown bool) Lock {
	lock := Lock{
		ID: ID(l.Kind, l.Name), Kind: l.Kind, Name: l.Name, Limit: l.Limit, Unreadable: l.Unreadable,
		Holders: make([]Holder, 0, len(l.Holders)),
	}
	for _, h := range l.Holders {
		lock.Holders = append(lock.Holders, Holder{
			h.Client, h.Owner, h.Label, h.Token, h.Weight, h.Shared, instant(h.Since), instant(h.Until),
			h.Cooldown, h.Retained, h.Named,
		})
	}
	if waitersKnown || len(l.Waiters) > 0 {
		lock.Waiters = make([]Waiter, 0, len(l.Waiters))
	}
	for _, w := range l.Waiters {
		lock.Waiters = append(lock.Waiters, Waiter{
			w.Client, w.Owner, w.Label, w.Weight, w.Shared, instant(w.Since), w.Position, w.Named,
		})
	}
	return lock
}

// instant makes instants comparable with ==: without the reading of a monotonic clock and in one time zone.
func instant(t time.Time) time.Time {
	if t.IsZero() {
		return time.Time{}
	}
	return t.Round(0).UTC()
}

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
