package redislock

import (
	"crypto/sha1" //nolint:gosec // the name that Redis gives to a script, not a secret
	"embed"
	"encoding/hex"
)

// Script is a Lua script and the name under which a server keeps it. A server forgets scripts when it restarts or is told
// to (SCRIPT FLUSH), so whoever runs one by its name must be ready to send the source.
type Script struct {
	source string
	sha    string
}

// Source is what EVAL and SCRIPT LOAD take.
func (s *Script) Source() string { return s.source }

// SHA is what EVALSHA takes.
func (s *Script) SHA() string { return s.sha }

// NewScript returns a script for [Conn.Call], for packages that build on this one. It answers with one string.
func NewScript(source string) *Script {
	sum := sha1.Sum([]byte(source)) //nolint:gosec // see the import
	return &Script{source: source, sha: hex.EncodeToString(sum[:])}
}

//go:embed scripts/*.lua
var scriptFiles embed.FS

// newScript joins the named files to one script: Lua on a server has no modules.
func newScript(names ...string) *Script {
	var source string
	for _, name := range names {
		text, err := scriptFiles.ReadFile("scripts/" + name + ".lua")
		if err != nil {
			panic(err) // the files are part of the program
		}
		source += string(text)
	}
	return NewScript(source)
}
