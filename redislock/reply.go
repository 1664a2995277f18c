// The answers of acquire and of the pushes, as text and as errors. Calls come from acquire.go, multi.go and
// notices.go; acquire.go turns a reply into a grant.

package redislock

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// outcome is the verdict of a script.
type outcome uint8

const (
	unreadable outcome = iota // no answer of ours
	granted
	queued
	parked    // waits for a signal
	held      // by another, and not queued
	wouldWait // as held, of a request that would queue
	over      // the request was released or undone
	broken    // by an operator
	adopted   // by another client
	nested    // the hold to adopt is not all that its owner has
	stuck     // it would wait for its own owner
	orphaned  // the hold beside which it was asked for is over
	conflict  // with the limit in use
	newer     // the lock is of a format that a later version wrote
)

// reply is an answer of the acquire script, or a push in the same form. Which fields are set depends on the verdict.
type reply struct {
	verdict outcome
	now     int64 // the server's clock, in microseconds
	link    Link  // the connection over which it came; 0 if pushes come over another

	// The first token of the block, its size, the nonce of the grant, and the lease that the server has granted.
	token  uint64
	tokens int
	nonce  string
	lease  time.Duration

	queuePlace int           // from 1, the head; 0 if it is not queued
	length     int           // of the queue, if the server tells
	next       time.Duration // until something may change by itself; 0 if nothing will
	holder     holder

	detail string // of a refusal
}

// holder is who is in the way. It is comparable, so that a change is noticed.
type holder struct {
	until, since int64 // the server's clock: until in milliseconds, since in microseconds; 0 if not known
	token        uint64
	meta         string
}

// parseReply reads the answer of acquire or requeue, which acquire_fast.lua describes. It never fails: what it cannot
// read is unreadable, with the text as its detail.
func parseReply(r Reply) reply {
	word, rest, _ := strings.Cut(r.Text, " ")
	a := reply{link: r.Link}
	switch word {
	case "G":
		a.verdict = granted
		a.parseGrant(rest)
	case "Q":
		a.verdict = queued
		a.parseHolder(rest)
	case "W":
		a.verdict = queued
		a.parseHold(rest)
	case "C":
		a.verdict = parked
		a.parseHolder(rest)
	case "H":
		a.verdict = held
		a.parseHolder(rest)
	case "L":
		a.verdict = wouldWait
		a.parseHolder(rest)
	case "gone":
		a.verdict = over
	case "broken":
		a.verdict = broken
	case "adopted":
		a.verdict = adopted
	case "nested":
		a.verdict = nested
	case "stuck":
		a.verdict = stuck
	case "lost":
		a.verdict, a.detail = orphaned, rest
	case "conflict":
		a.verdict, a.detail = conflict, rest
	case "newer":
		a.verdict, a.detail = newer, rest
	default:
		a.detail = r.Text
	}
	return a
}

// asAsked completes a short grant with what was asked for, which the server does not repeat.
func (a *reply) asAsked(tokens int, id string, lease time.Duration) {
	if a.verdict == granted && a.tokens == 0 {
		a.tokens, a.nonce, a.lease = tokens, id, lease
	}
}

// parseGrant reads NOW TOKEN TOKENS NONCE LEASE. If there is only NOW, that is the token, and asAsked fills in the
// rest.
func (a *reply) parseGrant(s string) {
	now, s, more := strings.Cut(s, " ")
	if n := wholeNumber(now); !more && n > 0 {
		a.now, a.token = n, uint64(n)
		return
	}
	token, s, _ := strings.Cut(s, " ")
	tokens, s, _ := strings.Cut(s, " ")
	nonce, lease, _ := strings.Cut(s, " ")
	a.now = wholeNumber(now)
	a.token, _ = strconv.ParseUint(token, 10, 64)
	a.tokens, _ = strconv.Atoi(tokens)
	a.nonce = nonce
	a.lease = millis(lease)
	// A grant without any of these cannot have come from our scripts.
	if a.token == 0 || a.tokens < 1 || a.lease <= 0 {
		a.verdict, a.detail = unreadable, s
	}
}

// parseHolder reads NOW PLACE NEXT UNTIL TOKEN SINCE META. PLACE may be PLACE:LENGTH.
func (a *reply) parseHolder(s string) {
	var f [7]string
	if !cutWords(s, f[:]) {
		a.verdict, a.detail = unreadable, s
		return
	}
	a.now = wholeNumber(f[0])
	place, length, _ := strings.Cut(f[1], ":")
	a.queuePlace, _ = strconv.Atoi(place)
	a.length, _ = strconv.Atoi(length)
	a.next = millis(f[2])
	a.holder.until, _ = strconv.ParseInt(f[3], 10, 64)
	a.holder.token, _ = strconv.ParseUint(f[4], 10, 64)
	a.holder.since = wholeNumber(f[5])
	a.holder.meta = f[6]
}

// parseHold reads NOW FIRST NUMBER P1 UNTIL STATE ID ALIVE SINCE GRANTED TOKEN TOKENS PASS WAY CLAIM TTL LEASE WANT
// CHANNEL META. This is the quick answer to a queued request, with the stored hold as it is. Numbers may be missing in
// the queue, so the place is an upper bound.
func (a *reply) parseHold(s string) {
	var f [20]string
	if !cutWords(s, f[:]) {
		a.verdict, a.detail = unreadable, s
		return
	}
	a.now = wholeNumber(f[0])
	a.queuePlace = int(wholeNumber(f[2])-wholeNumber(f[1])) + 1
	a.length = a.queuePlace
	a.holder.until = wholeNumber(f[4])
	a.next = time.Duration(a.holder.until-a.now/1000) * time.Millisecond
	pass, _ := strconv.ParseUint(f[12], 10, 64) // passes inside the holder's process count on the token
	a.holder.token, _ = strconv.ParseUint(f[10], 10, 64)
	a.holder.token += pass
	a.holder.since = wholeNumber(f[9])
	a.holder.meta = f[19]
}

// cutWords cuts s into words. The last takes the rest, which may have spaces. It reports false if there are too few.
func cutWords(s string, words []string) bool {
	for i := range len(words) - 1 {
		word, rest, more := strings.Cut(s, " ")
		if !more {
			return false
		}
		words[i], s = word, rest
	}
	words[len(words)-1] = s
	return true
}

// wholeNumber reads one, such as the microseconds of the server's clock. It returns 0 if s is none.
func wholeNumber(s string) int64 {
	n, _ := strconv.ParseInt(s, 10, 64)
	return n
}

// millis reads a number of milliseconds.
func millis(s string) time.Duration {
	n, _ := strconv.ParseInt(s, 10, 64)
	return time.Duration(n) * time.Millisecond
}

// heldError describes the holder of key to a caller. Its instants are the server's.
func (h *holder) heldError(key driver.Key) *driver.HeldError {
	e := &driver.HeldError{Kind: key.Kind, Name: key.Name, Token: h.token}
	if h.since > 0 {
		e.Since = time.UnixMicro(h.since)
	}
	if h.until > 0 {
		e.Until = time.UnixMilli(h.until)
	}
	m := parseMeta(h.meta)
	e.Owner, e.Client, e.Retains = m.Owner, m.Client, m.Retention != unmarked
	return e
}

// refusal is the error for an answer that is neither a grant nor a place in the queue.
func (a *reply) refusal(r *driver.Request) error {
	switch a.verdict {
	case held, wouldWait:
		return a.holder.heldError(r.Key)
	case over:
		return errGone(r.Key)
	case broken:
		return &driver.LostError{Kind: r.Kind, Name: r.Name, Reason: driver.LostBroken}
	case adopted:
		return lostError(r.Key, "adopted")
	case nested:
		return fmt.Errorf("the owner of the hold has, or may have, others beside it: %w", driver.ErrNested)
	case stuck:
		return fmt.Errorf("the owner %q would wait for a hold of its own: %w", r.Owner, driver.ErrDeadlock)
	case orphaned:
		return lostError(r.Key, a.detail)
	case conflict:
		return fmt.Errorf("the limit is %s while it is in use, not %d: %w", a.detail, r.Limit, driver.ErrConflict)
	case newer:
		return errNewer(a.detail)
	}
	return fmt.Errorf("the server's answer %q cannot be read; do other programs use keys of this prefix?", a.detail)
}

// errGone is the error for a request that was released or undone before. It matches driver.ErrLost.
func errGone(key driver.Key) error {
	return fmt.Errorf("%s %q: this request was released or undone: %w", key.Kind, key.Name, driver.ErrLost)
}

// isVersion matches the form of all versions of the format, also of later ones.
var isVersion = regexp.MustCompile(`^[1-9]\d{0,2}$`)

// errNewer says that a lock has a later format than this version knows. The version is empty if it is not known. A
// version that has not the form of one belongs to another program's value, so that is errForeign.
func errNewer(version string) error {
	switch {
	case version == "":
		version = "a later one"
	case !isVersion.MatchString(version): // it may be a secret, which must not be shown
		return errForeign
	}
	return fmt.Errorf(
		"the lock is in use by a later version of interlock (format %s, this one knows %s); update this program: %w",
		version, format, driver.ErrConflict)
}

// plainFormat is the version of what the scripts store; format is that of locks with a crowd (many shared holders); see
// wire.md.
const plainFormat, format = "1", "2"
