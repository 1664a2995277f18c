// The calls of a Guard, without a client library: guard.go and goredislock send them. guard.lua, in front of each
// script, checks the stamp.

package redislock

import (
	_ "embed" // guard.lua
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/interlock-go/interlock/fence"
	"github.com/interlock-go/interlock/redislock/conn"
)

// GuardCall is one script that checks a stamp and then does something, ready to be sent. It is the seam for guards over
// client libraries other than rueidis: goredislock.NewGuard is one. All guards that send these calls to one server are
// one fence.
//
// The sender runs Script with Keys and Args on the node that has Keys[0], by EVALSHA and, if the server answers
// NOSCRIPT, by EVAL. It must not send a call again whose outcome is unknown: what the script of [GuardEval] does would
// be done twice.
type GuardCall struct {
	conn.Call

	resource string
	stamp    fence.Stamp
}

//go:embed guard.lua
var guardPrelude string

// Each script is the prelude and one command, so the check and the access are one atomic step.
var (
	guardTouch = conn.NewScript(guardPrelude)
	guardGet   = conn.NewScript(guardPrelude + `return redis.call('GET', KEYS[1])`)
	guardSet   = conn.NewScript(guardPrelude + `return redis.call('SET', KEYS[1], ARGV[1])`)
)

// errReaderWrites is for what can only be a mistake.
var errReaderWrites = errors.New("the stamp is a reader's, which must not write")

// GuardCheck is the call of [Guard.Check]. Its answer means nothing.
func GuardCheck(resource string, s fence.Stamp) (*GuardCall, error) {
	return newGuardCall(guardTouch, resource, s, nil, nil)
}

// GuardGet is the call of [Guard.Get]. It answers as GET does.
func GuardGet(key string, s fence.Stamp) (*GuardCall, error) {
	return newGuardCall(guardGet, key, s, []string{key}, nil)
}

// GuardSet is the call of [Guard.Set]. It answers as SET does. A reader's stamp is an error.
func GuardSet(key, value string, s fence.Stamp) (*GuardCall, error) {
	if s.Shared {
		return nil, fmt.Errorf("redislock: guard %q: %w", key, errReaderWrites)
	}
	return newGuardCall(guardSet, key, s, []string{key}, []string{value})
}

// GuardEval is the call of [Guard.Eval]. It answers what the script returns.
func GuardEval(script, resource string, s fence.Stamp, keys, args []string) (*GuardCall, error) {
	return newGuardCall(conn.NewScript(guardPrelude+script), resource, s, keys, args)
}

// newGuardCall refuses names and stamps that make no sense. An empty guard in memory has the same rules, and says what
// is wrong.
func newGuardCall(script *conn.Script, resource string, s fence.Stamp, keys, args []string) (*GuardCall, error) {
	if err := new(fence.MemoryGuard).Check(resource, s); err != nil {
		return nil, err
	}
	role := "w"
	if s.Shared {
		role = "r"
	}
	return &GuardCall{
		Call: conn.Call{
			Script: script,
			Slot:   conn.SlotOf(resource),
			Keys:   append([]string{GuardKey(resource)}, keys...),
			// The script compares tokens as texts, so they have twenty digits. The nonce comes back in the text of an
			// error, where spaces separate words, so it is escaped.
			Args: append([]string{fmt.Sprintf("%020d", s.Token), url.QueryEscape(s.Nonce), role}, args...),
		},
		resource: resource, stamp: s,
	}, nil
}

// InOneSlot returns an error if a Cluster would refuse the call because its keys are in several slots.
func (c *GuardCall) InOneSlot() error {
	for _, key := range c.Keys {
		if conn.SlotOf(key) != c.Slot {
			return fmt.Errorf(
				"redislock: guard %q: the key %q is in another slot of the Cluster; give both the same hash tag",
				c.resource, key)
		}
	}
	return nil
}

// Explain returns the error of a guard for the error with which the call ended: a *fence.StaleError if the server
// refused the stamp, and else an error that wraps err. For nil it returns nil.
func (c *GuardCall) Explain(err error) error {
	if err == nil {
		return nil
	}
	if seen, is := guardRefusal(err.Error()); is {
		return &fence.StaleError{Resource: c.resource, Have: c.stamp, Seen: seen}
	}
	return fmt.Errorf("redislock: guard %q: %w", c.resource, err)
}

// GuardKey is the key at which guards keep the marks of a resource: it is in the slot of the resource.
func GuardKey(resource string) string {
	return defaultPrefix + "fence:{" + conn.Tag(conn.SlotOf(resource)) + "}:" + resource
}

// guardRefusal reads the error by which guard.lua refuses: FENCED ROLE TOKEN NONCE, of the newest stamp that the
// resource has seen.
func guardRefusal(message string) (seen fence.Stamp, is bool) {
	words := strings.Split(message, " ")
	if len(words) != 4 || words[0] != "FENCED" {
		return fence.Stamp{}, false
	}
	token, err := strconv.ParseUint(words[2], 10, 64)
	if err != nil {
		return fence.Stamp{}, false
	}
	nonce, err := url.QueryUnescape(words[3])
	return fence.Stamp{Token: token, Nonce: nonce, Shared: words[1] == "r"}, err == nil
}
