package redislock

import (
	"crypto/sha1" //nolint:gosec // the name that Redis gives to a script, not a secret
	"embed"
	"encoding/hex"
	"strings"
	"sync"
)

// Script is a Lua script and the name under which a server keeps it. A server forgets scripts when it restarts or is told
// to (SCRIPT FLUSH), so whoever runs one by its name must be ready to send the source.
type Script struct {
	parts []string // files that source is made of; none if it was given

	once   sync.Once // completes what follows, which a program that never runs the script does not pay for
	source string
	sha    string
}

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

// NewScript returns a script for [Conn.Call], for packages that build on this one. It answers with one string.
func NewScript(source string) *Script { return &Script{source: source} }

// complete joins the parts and names the script.
func (s *Script) complete() {
	s.once.Do(func() {
		if len(s.parts) > 0 {
			s.source = join(s.parts)
		}
		sum := sha1.Sum([]byte(s.source)) //nolint:gosec // see the import
		s.sha = hex.EncodeToString(sum[:])
	})
}

//go:embed scripts/*.lua
var scriptFiles embed.FS

// newScript returns a script of the named files.
func newScript(names ...string) *Script { return &Script{parts: names} }

// join makes one script of the named files: Lua on a server has no modules.
func join(names []string) string {
	var source strings.Builder
	for _, name := range names {
		text, err := scriptFiles.ReadFile("scripts/" + name + ".lua")
		if err != nil {
			panic(err) // the files are part of the program
		}
		source.Write(text)
	}
	return source.String()
}
