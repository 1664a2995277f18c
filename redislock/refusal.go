// What an error of a call means: held, refused or unavailable, and whether a copy may run (docs/rationale.md, Classes
// of errors). The operations return what is sorted here; package conn has decided before whether to try again.

package redislock

import (
	"errors"
	"fmt"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/redislock/conn"
)

// errForeign is for a key whose value is no lock of interlock. The value is never shown: for another program's lock it
// is the secret that opens it.
var errForeign = errors.New("the key holds a value that interlock did not write")

// foreignHint is the advice about such a key.
const foreignHint = "delete the key if no program needs it, or set another prefix"

// meaning is what an error of a call means to its caller.
type meaning uint8

const (
	mayHaveRun meaning = iota // the call may have run; its outcome is unknown
	notSent                   // it has not run, and may succeed in a moment
	denied                    // the server refused it, and would refuse it again
)

// errorVerdict is the judgement of an error.
type errorVerdict struct {
	class meaning
	hint  string // what to do about it, for people; may be empty
	part  bool   // the script may have done some of its writes before it was refused
}

// refusals are the answers by which servers refuse, and what to do about them. A script does not roll back: the
// commands before the refused one have been done. A write without room, to a replica, or on a server that cannot save
// is refused only if it is the script's first write, so those leave nothing behind.
var refusals = []struct {
	code, hint string
	part       bool
}{
	{code: "NOAUTH", hint: "the server wants a user or a password"},
	{code: "WRONGPASS", hint: "user or password is wrong"},
	{code: "NOPERM", hint: rightsHint, part: true},
	{code: "The user executing the script", hint: rightsHint, part: true},
	{code: "ACL failure in script:", hint: rightsHint, part: true}, // Redis 7.2 and later, Valkey
	{
		code: "DENIED",
		hint: "the server is in protected mode: set a password, or let it listen on the loopback address alone",
	},
	{code: "OOM", hint: "the server is full: raise maxmemory, or delete what nobody needs; locks that are held go on"},
	{code: "MISCONF", hint: "the server cannot save its data: see its log, and the room on its disk"},
	{code: "READONLY", hint: replicaHint},
	{code: "unknown command", hint: lacksHint},
	// Within a script, where a command was renamed (rename-command), or is not there yet.
	{code: "Unknown Redis command", hint: lacksHint, part: true},
	{code: "Unknown command called from script", hint: lacksHint, part: true}, // Valkey
}

const (
	rightsHint  = "see the package documentation of redislock for the rights that locking needs"
	lacksHint   = "the server, or a proxy in front of it, lacks a command that locking needs"
	replicaHint = "the server is a replica: name the primary, or let Sentinels or a Cluster name it"
	clusterHint = "the server is a node of a Cluster: use a client for a Cluster"
)

// passing are the codes of refusals that end by themselves: the server starts, fails over, moves a slot, or runs
// another script.
var passing = []string{
	"LOADING", "TRYAGAIN", "CLUSTERDOWN", "MASTERDOWN", "BUSY", "NOREPLICAS", "max number of clients reached",
}

// judgeError says what an error of a call means, whichever client library it has come through. It is the only place
// where that is decided. A Conn says by a RefusedError whether a call may have run; the rest is read from the server's
// own text. An error that is not known counts as mayHaveRun, the safe side.
//
// failsOver says that another server takes the place of a failed one: then a replica's READONLY passes, and a MOVED is
// no mistake.
func judgeError(err error, failsOver bool) errorVerdict {
	var refused *RefusedError
	var broken *net.OpError
	text := err.Error()
	script := conn.InScript(text) || strings.Contains(text, "user_script")
	switch {
	// Its caller had no more time to have it tried again: whatever the last answer was, another may come next.
	case isRefusal(err) && isEnd(err):
		return errorVerdict{class: notSent}
	case errors.Is(err, errForeign), says(text, "WRONGTYPE"):
		return errorVerdict{class: denied, hint: foreignHint}
	// A Lua error on a lock that has not the form it must have. The function split, with its local 'at', reads the lock
	// before anything is written; elsewhere writes may have happened.
	case script && strings.Contains(text, "attempt to "):
		inSplit := strings.Contains(text, "on local 'at'") // which reads the lock, before anything is written
		return errorVerdict{class: denied, hint: foreignHint, part: !inSplit}
	case failsOver && (says(text, "READONLY") || errors.Is(err, conn.ErrReplica)):
		return errorVerdict{class: notSent}
	}
	for _, r := range refusals {
		if says(text, r.code) {
			return errorVerdict{class: denied, hint: r.hint, part: r.part && script}
		}
	}
	for _, code := range passing {
		if says(text, code) {
			return errorVerdict{class: notSent}
		}
	}
	switch {
	case errors.Is(err, conn.ErrClusterNode), !failsOver && (says(text, "MOVED") || says(text, "ASK")):
		return errorVerdict{class: denied, hint: clusterHint}
	case errors.Is(err, conn.ErrReplica):
		return errorVerdict{class: denied, hint: replicaHint}
	case errors.As(err, &refused), errors.As(err, &broken) && broken.Op == "dial":
		return errorVerdict{class: notSent}
	}
	return errorVerdict{class: mayHaveRun}
}

// says reports whether an error's text is a server's answer that begins with code. Redis 6 packs the answer to a
// command in a script into one of its own, behind a dash; client libraries put words of theirs in front.
func says(text, code string) bool {
	text, code = strings.TrimPrefix(text, "ERR ")+" ", code+" " // which rueidis leaves out
	return strings.HasPrefix(text, code) || strings.Contains(text, ": "+code) || strings.Contains(text, ": -"+code)
}

// failsOver reports whether other servers of the deployment take the place of a failed one.
func (d *Driver) failsOver() bool { return conn.FailsOver(d.conn) }

// sorted turns an error of a call for key into one of the classes of package driver. copies says that an earlier copy
// of the request may still be under way, or has left a place in the queue; then a refusal is Open, and nothing counts
// as not sent.
func (d *Driver) sorted(op string, key driver.Key, err error, copies bool) error {
	o := judgeError(err, d.failsOver())
	switch {
	case o.class == denied && o.hint == foreignHint:
		name, _ := d.names.lock(key)
		return &driver.RefusedError{
			Op: op, Name: key.Name, Err: &foreignError{name, err}, Hint: o.hint, Open: o.part || copies,
		}
	case o.class == denied:
		return &driver.RefusedError{Op: op, Name: key.Name, Err: plainly(err), Hint: o.hint, Open: o.part || copies}
	}
	return &driver.UnavailableError{Op: op, Name: key.Name, Err: plainly(err), NotSent: o.class == notSent && !copies}
}

// newer is errNewer for a call for key. A version that is none belongs to another program's value.
func (d *Driver) newer(op string, key driver.Key, version string) error {
	if err := errNewer(version); !errors.Is(err, errForeign) {
		return err
	}
	return d.sorted(op, key, errForeign, false)
}

// foreignError is errForeign with the name of the key.
type foreignError struct {
	key string
	err error
}

// Error names the key, and nothing of what is in it.
func (e *foreignError) Error() string {
	return "the key " + strconv.Quote(e.key) + " holds a value that interlock did not write"
}

// Is matches errForeign.
func (e *foreignError) Is(t error) bool { return t == errForeign }

// Unwrap returns what the server or its script has said.
func (e *foreignError) Unwrap() error { return e.err }

// answerError is a server's answer without what it adds for the authors of scripts. The whole answer stays below it.
type answerError struct {
	text string
	err  error
}

func (e *answerError) Error() string { return e.text }

// Unwrap returns the whole answer.
func (e *answerError) Unwrap() error { return e.err }

// scriptNoise matches what Redis 7 appends to, and Redis 6 puts in front of, the error of a command in a script.
var scriptNoise = regexp.MustCompile(
	`\s*script: \S+, on @user_script:\S*|` +
		`^(ERR )?Error running script \(call to \S+\): @user_script:\s*\d+: @user_script: \d+: -?`)

// plainly shortens the text of a server's answer for people, and keeps err for errors.Is and errors.As.
func plainly(err error) error {
	text := err.Error()
	if short := scriptNoise.ReplaceAllString(text, ""); short != text {
		return &answerError{short, err}
	}
	return err
}

// waitForReplicas makes the call one that waits for the replicas, if the options say so.
func (d *Driver) waitForReplicas(c *Call) {
	c.Replicas, c.ReplicaTimeout = d.opts.Replicas, d.opts.ReplicaTimeout
}

// isAcked reports whether enough replicas have acknowledged a call that waited for them.
func (d *Driver) isAcked(r Reply) bool { return r.Acked >= d.opts.Replicas }

// acked returns the answer to a call, which is an error if it waited for replicas and too few have acknowledged.
func (d *Driver) acked(c *Call, answer Reply) Reply {
	if answer.Err == nil && answer.Acked < c.Replicas {
		answer.Err = d.tooFewReplicas(answer.Acked)
	}
	return answer
}

// tooFewReplicas is the error of a change that the server has made but too few replicas have acknowledged. It has
// happened on the primary, so the caller must undo it or repeat it by its ID.
func (d *Driver) tooFewReplicas(acked int) error {
	return fmt.Errorf("%d of %d replicas have acknowledged within %v", acked, d.opts.Replicas, d.opts.ReplicaTimeout)
}

// Which answers end a wait: heartbeats ask, and watch.go before it asks again.

// An answer to a heartbeat ends the wait if the server would repeat it until somebody changes its set-up: a removed
// right, a password that is no longer valid, a key that is no lock, a command that is missing.
//
// A wait outlasts what passes by itself: LOADING, BUSY, TRYAGAIN, MOVED, ASK, CLUSTERDOWN, MASTERDOWN and READONLY,
// which are parts of a restart or a failover; NOREPLICAS, until the replicas are back; OOM and MISCONF, until there is
// room again; too many connections; and whatever is not known here. An unknown error must not cost a waiter its place.
var (
	// finalCodes are the first words of such answers. Since Redis 7 that includes answers about a command inside a
	// script.
	finalCodes = []string{"NOPERM", "NOAUTH", "WRONGPASS", "DENIED", "WRONGTYPE"}
	// finalTexts are parts of such answers that begin with another word: Redis 6 packs the error of a command in a
	// script into one of its own, and some errors have no word of their own.
	finalTexts = []string{
		"unknown command", "Unknown Redis command", "Unknown command called",
		"The user executing the script can't", "ACL failure in script",
		"-NOPERM ", "-WRONGTYPE ", ": WRONGTYPE ",
	}
)

// isFinal reports whether err is such an answer.
func isFinal(err error) bool {
	if err == nil {
		return false
	}
	message := innermost(err)
	code, _, _ := strings.Cut(message, " ")
	return slices.Contains(finalCodes, code) ||
		slices.ContainsFunc(finalTexts, func(text string) bool { return strings.Contains(message, text) })
}

// innermost is the text of the error that err wraps last, without what was added on its way. For joined errors it is
// "": they may contradict each other.
func innermost(err error) string {
	for inner := err; inner != nil; inner = errors.Unwrap(inner) {
		err = inner
	}
	if _, joined := err.(interface{ Unwrap() []error }); joined { // nothing is inside
		return ""
	}
	return err.Error()
}
