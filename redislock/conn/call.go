package conn

import (
	"crypto/sha1" //nolint:gosec // the name that Redis gives to a script, not a secret
	"encoding/hex"
	"sync"
	"time"
)

// Call is one run of a script.
type Call struct {
	Script *Script
	Slot   uint16   // of all Keys
	Keys   []string // KEYS in the script
	Args   []string // ARGV in the script

	// Replicas, if positive, has the call followed by WAIT for so many replicas on the same connection, for at most
	// ReplicaTimeout.
	Replicas       int
	ReplicaTimeout time.Duration // at least 1 ms, if Replicas is positive
}

// Reply is the answer to a Call. Scripts answer with one string.
type Reply struct {
	Text string // what the script returned
	Link Link   // the connection it came over; 0 if pushes do not come over the same one
	// Acked is how many replicas have acknowledged, if the call asked for it.
	Acked int
	// Err is nil if the script ran to its end. Otherwise, unless it is a [RefusedError], whether it ran is unknown.
	Err error
}

// Script is a Lua script and the name under which a server keeps it. A server forgets scripts when it restarts or is
// told to (SCRIPT FLUSH), so whoever runs one by its name must be ready to send the source. It must not be copied.
type Script struct {
	read func() string // nil if the source was given

	once   sync.Once // completes what follows, which a program that never runs the script does not pay for
	source string
	sha    string
}

// NewScript returns a script for [Conn.Call]. It answers with one string.
func NewScript(source string) *Script { return &Script{source: source} }

// NewLateScript is NewScript for a source that is read when it is needed first, by one call of read.
func NewLateScript(read func() string) *Script { return &Script{read: read} }

// Source is what EVAL and SCRIPT LOAD take.
func (s *Script) Source() string {
	s.complete()
	return s.source
}

// SHA is what EVALSHA takes.
func (s *Script) SHA() string {
	s.complete()
	return s.sha
}

// complete reads the source and names the script.
func (s *Script) complete() {
	s.once.Do(func() {
		if s.read != nil {
			s.source = s.read()
		}
		sum := sha1.Sum([]byte(s.source)) //nolint:gosec // see the import
		s.sha = hex.EncodeToString(sum[:])
	})
}
