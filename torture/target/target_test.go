package target

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/internal/servers"
)

// What is listed is known, once, and what breaks exclusion can be done.
func TestTargets_ListFaultsThatAreKnown(t *testing.T) {
	for _, g := range Targets() {
		for i, f := range g.Faults {
			if !slices.Contains(All(), f) {
				t.Errorf("%s has the fault %s, which nobody knows", g.Name, f)
			}
			if slices.Contains(g.Faults[:i], f) {
				t.Errorf("%s has the fault %s twice", g.Name, f)
			}
		}
		for f := range g.Broken {
			if !g.Can(f) {
				t.Errorf("%s is broken by %s, which cannot be done to it", g.Name, f)
			}
		}
		for f, lease := range g.Leases {
			if g.Broken[f] == "" && f != Depose || lease <= g.Lease {
				t.Errorf("%s has leases of %v under %s, to show what cannot be", g.Name, lease, f)
			}
		}
		for _, f := range g.Untold {
			if g.Broken[f] == "" || !g.Can(Cut) {
				t.Errorf("%s has clients that are not told of %s, to show what cannot be", g.Name, f)
			}
		}
	}
}

// A clock that is wrong takes a C compiler. Where there is none, that fault is skipped and says so, and
// everything else is done.
func TestWithoutACompiler_OnlyClocksAreWithheld(t *testing.T) {
	if testing.Short() {
		t.Skip("it starts a server")
	}
	server, err := exec.LookPath("redis-server")
	if err != nil {
		t.Skip(err)
	}
	t.Setenv("INTERLOCK_REQUIRE", "")
	bin := t.TempDir()
	if err := os.Symlink(server, filepath.Join(bin, "redis-server")); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin)
	redis, err := Find("redis")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range All() {
		// these need other things
		if why := redis.Withheld(f); (why != nil) != f.setsClocks() && f != Partition && f != Depose && f != DiskFull {
			t.Errorf("%s is withheld: %v", f, why)
		}
	}
	if why := redis.Withheld(Clock); why == nil || !strings.Contains(why.Error(), "C compiler") {
		t.Errorf("clocks are withheld because of %v", why)
	}
	stage, err := servers.NewStage()
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := stage.Close(); err != nil {
			t.Error(err)
		}
	}()
	for _, name := range []string{"redis", "redlock"} {
		g, err := Find(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := stage.Play(func(t testing.TB) { g.Start(t, []Fault{Kill, Stop}) }); err != nil {
			t.Errorf("%s does not start: %v", name, err)
		}
		if err := stage.Play(func(t testing.TB) { g.Start(t, []Fault{Clock}) }); !errors.Is(err, servers.ErrMissing) {
			t.Errorf("%s with a clock that is wrong: %v", name, err)
		}
	}
}

// Where servers tell clients their addresses a proxy takes a network, and otherwise only what is cut does.
func TestTakesNetwork_WhereProxiesStandInPlaces(t *testing.T) {
	for _, c := range []struct {
		engine string
		fault  Fault
		want   bool
	}{
		{"redis", Cut, false},
		{"redlock", Cut, false},
		{"redlock", Partition, true},
		{"redis-sentinel", Cut, true},
		{"redis-sentinel", KillAsking, true},
		{"redis-cluster", NoFiles, true},
		{"redis-cluster", Kill, false},
	} {
		g, err := Find(c.engine)
		if err != nil {
			t.Fatal(err)
		}
		if got := g.takesNetwork(c.fault); got != c.want {
			t.Errorf("%s under %s: %v", c.engine, c.fault, got)
		}
	}
}
