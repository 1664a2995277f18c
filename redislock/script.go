// How the Lua files become scripts. scripts.go names their parts; conn.Script sends them.

package redislock

import (
	"embed"
	"strings"

	"github.com/interlock-go/interlock/redislock/conn"
)

//go:embed scripts/*.lua
var scriptFiles embed.FS

// newScript returns a script made of the files with these names. They are joined at the first run: a program that never
// uses some kind of lock does not pay for its text.
func newScript(names string) *Script {
	return conn.NewLateScript(func() string { return join(strings.Fields(names)) })
}

// join makes one script of the named files. Lua on a server has no modules.
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
