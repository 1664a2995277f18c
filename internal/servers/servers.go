// Package servers starts real servers for tests: from PATH, on free ports, each with a data folder of its own, and
// kills them when the test ends. It needs the standard library only, so it asks a server whether it is ready in the
// server's own protocol. A test can kill a server, make it hang and start it again on its old address ([Server]), and
// put a [Proxy] before it that plays a bad network.
//
// # Servers that are not installed
//
// A test whose server is missing is skipped, and says what to install. It fails instead if INTERLOCK_REQUIRE is "all"
// or lists the server's name, as in INTERLOCK_REQUIRE=redis,etcd: then nothing is skipped unnoticed. What a [Network]
// and a [Disk] need is called [Namespaces].
//
// With -short no server is started either, and such a test is skipped, unless INTERLOCK_REQUIRE wants the server.
//
// # A further server
//
// Write a [Spec] in a file of its own, as redis.go does, and a function that calls [Start] and returns what its engine
// needs in a URL.
package servers

import (
	"context"
	"flag"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	_ "github.com/interlock-go/interlock/internal/quiet" // tests break locks on purpose
)

// Spec says how to start one kind of server.
type Spec struct {
	Name     string   // as INTERLOCK_REQUIRE lists it
	Binaries []string // what to look for on PATH, best first
	Install  string   // what to install, for the message of a skipped test

	Ports int // how many ports it needs; 0 is 1

	// Prepare, if not nil, fills the data folder before the start.
	Prepare func(ctx context.Context, s Site) error

	// Args are the arguments that make the server stay in the foreground, listen on the site's ports on loopback alone,
	// and keep its data in the site's folder.
	Args func(s Site) []string
	Env  []string // beside the environment of the test, as KEY=value

	// Ready asks the server whether it serves, and returns nil if so. It is called until it does.
	Ready func(ctx context.Context, s Site) error

	// At is the place in a [Network] where the server is, or nil for this process's own network.
	At *Member

	// Disk is where the server has its folder, or nil for the file system of temporary files.
	Disk *Disk
}

// room is where the server's processes are. A server has a place of its own or a disk of its own, not both.
func (spec *Spec) room() *room {
	if spec.Disk != nil {
		return spec.Disk.room
	}
	return spec.At.inside()
}

// address is where the server listens.
func (spec *Spec) address() string {
	if spec.At != nil {
		return spec.At.addr
	}
	return host
}

// Site is where a server lives.
type Site struct {
	Binary string // full path
	Dir    string // empty folder of its own
	Host   string // an address of loopback, or of a member of a Network
	Ports  []int
}

// Required reports whether INTERLOCK_REQUIRE lists one of the names, and so forbids to skip what needs it.
func Required(names ...string) bool {
	listed := strings.FieldsFunc(os.Getenv("INTERLOCK_REQUIRE"), func(r rune) bool { return r == ',' || r == ' ' })
	return slices.ContainsFunc(names, func(name string) bool { return slices.Contains(listed, name) })
}

// shortOf reports whether what is called so is left out because of -short.
func shortOf(names ...string) bool {
	return testing.Testing() && flag.Parsed() && testing.Short() && !Required(names...)
}

// find returns the path of the server's binary, or skips or fails t.
func (spec *Spec) find(t testing.TB) string {
	t.Helper()
	path, lacks := spec.lookUp()
	if path == "" {
		spec.missing(t, lacks)
	} else if shortOf("all", spec.Name) {
		t.Skipf("it needs %s, and -short starts no server", spec.Name)
	}
	return path
}

// lookUp returns the path of the binary, or else what is missing.
func (spec *Spec) lookUp() (path, lacks string) {
	for _, name := range spec.Binaries {
		if path, err := exec.LookPath(name); err == nil {
			return path, ""
		}
	}
	return "", "no " + strings.Join(spec.Binaries, " nor ") + " on PATH"
}

// missing skips or fails t.
func (spec *Spec) missing(t testing.TB, what string) {
	t.Helper()
	if Required("all", spec.Name) {
		t.Fatalf("%s is not installed (%s), and INTERLOCK_REQUIRE wants it: install %s", spec.Name, what, spec.Install)
	}
	t.Skipf("%s is not installed (%s): install %s", spec.Name, what, spec.Install)
}
