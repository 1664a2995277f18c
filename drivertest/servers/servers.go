// Package servers starts real servers for tests: from PATH, on free ports, each with a data folder of its own, and kills
// them when the test ends. It needs the standard library only, so it asks a server whether it is ready in the server's
// own protocol. A test can kill a server, make it hang and start it again on its old address ([Server]), and put a
// [Proxy] before it that plays a bad network.
//
// # Servers that are not installed
//
// A test whose server is missing is skipped, and says what to install. It fails instead if INTERLOCK_REQUIRE is "all" or
// lists the server's name, as in INTERLOCK_REQUIRE=redis,etcd: then nothing is skipped unnoticed.
//
// # A further server
//
// Write a [Spec] in a file of its own, as redis.go does, and a function that calls [Start] and returns what its engine
// needs in a URL.
package servers

import (
	"context"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// Spec says how to start one kind of server.
type Spec struct {
	Name     string   // as INTERLOCK_REQUIRE lists it
	Binaries []string // what to look for on PATH, best first
	Install  string   // what to install, for the message of a skipped test

	Ports int // how many ports it needs; 0 is 1

	// Prepare, if not nil, fills the data folder before the start.
	Prepare func(ctx context.Context, s Site) error

	// Args are the arguments that make the server stay in the foreground, listen on the site's ports on loopback alone, and
	// keep its data in the site's folder.
	Args func(s Site) []string
	Env  []string // beside the environment of the test, as KEY=value

	// Ready asks the server whether it serves, and returns nil if so. It is called until it does.
	Ready func(ctx context.Context, s Site) error
}

// Site is where a server lives.
type Site struct {
	Binary string // full path
	Dir    string // empty folder of its own
	Host   string // an address of loopback
	Ports  []int
}

// required reports whether the environment forbids to skip the server.
func (spec *Spec) required() bool {
	names := strings.FieldsFunc(os.Getenv("INTERLOCK_REQUIRE"), func(r rune) bool { return r == ',' || r == ' ' })
	return slices.Contains(names, "all") || slices.Contains(names, spec.Name)
}

// find returns the path of the server's binary, or skips or fails t.
func (spec *Spec) find(t testing.TB) string {
	t.Helper()
	for _, name := range spec.Binaries {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	spec.missing(t, "no "+strings.Join(spec.Binaries, " nor ")+" on PATH")
	return ""
}

// missing skips or fails t.
func (spec *Spec) missing(t testing.TB, what string) {
	t.Helper()
	if spec.required() {
		t.Fatalf("%s is not installed (%s), and INTERLOCK_REQUIRE wants it: install %s", spec.Name, what, spec.Install)
	}
	t.Skipf("%s is not installed (%s): install %s", spec.Name, what, spec.Install)
}
