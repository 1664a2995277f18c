// Call and Reply, which every transport takes and returns, and Script. conn.go has the interface that uses them.

package conn

import (
	"crypto/sha1" //nolint:gosec // the name that Redis gives to a script, not a secret
	"encoding/hex"
	"sync"
	"time"
)

// Call is one run of a script. A Conn does not keep it after it has returned, so a caller may use it again.
type Call struct {
	Script *Script  // what runs
	Slot   uint16   // of all Keys; used in a Cluster only
	Keys   []string // KEYS in the script
	Args   []string // ARGV in the script

	// Replicas, if positive, makes the Conn send WAIT for so many replicas after the call, on the same connection: WAIT
	// is about the connection's own writes. The server waits for at most ReplicaTimeout.
	Replicas       int
	ReplicaTimeout time.Duration // at least 1 ms, if Replicas is positive
}

// Reply is the answer to a Call. Scripts answer with one string, because parsing it costs a client less than a list
// (docs/rationale.md, One key per lock).
type Reply struct {
	Text string // what the script returned
	Link Link   // the connection it came over; 0 if pushes do not come over the same one
	// Acked is how many replicas have acknowledged, if the call asked for that.
	Acked int
	// Err is nil if the script ran to its end. If it is a [RefusedError] the script did not run; after any other error
	// that is unknown.
	Err error
}

// Script is a Lua script and its name on a server (its SHA-1). A server forgets scripts when it restarts or is told to
// (SCRIPT FLUSH), so whoever runs one by its name must be ready to send the source. A Script must not be copied; it is
// safe for concurrent use.
type Script struct {
	read func() string // nil if the source was given; called once

	// once completes what follows, so that a program that never runs the script does not pay for it.
	once   sync.Once
	source string
	sha    string
}

// NewScript returns a script for [Conn.Call]. It answers with one string.
func NewScript(source string) *Script { return &Script{source: source} }

// NewLateScript is NewScript for a source that read returns. read is called when the source is first needed, and only
// once.
func NewLateScript(read func() string) *Script { return &Script{read: read} }

// Source returns what EVAL and SCRIPT LOAD take.
func (s *Script) Source() string {
	s.complete()
	return s.source
}

// SHA returns what EVALSHA takes.
func (s *Script) SHA() string {
	s.complete()
	return s.sha
}

// complete reads the source and computes the script's name.
func (s *Script) complete() {
	s.once.Do(func() {
		if s.read != nil {
			s.source = s.read()
		}
		sum := sha1.Sum([]byte(s.source)) //nolint:gosec // see the import
		s.sha = hex.EncodeToString(sum[:])
	})
}
