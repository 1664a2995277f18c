package main

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/longrun"
	"github.com/interlock-go/interlock/internal/servers"
	"github.com/rogpeppe/go-internal/testscript"
)

// previous is the commit whose programs share locks with those of this tree. Replace it by that of the last release,
// and tell in docs/operations.md ("Upgrades") what came of it.
const previous = "ba0800c3280f0ab1d6da99eb7d36079e5106348a"

// TestMixedVersions has programs of an earlier version and of this tree take turns on one set of locks: those of a
// fleet that is being upgraded, machine by machine. On each engine it runs testdata/mixed twice, so that either version
// comes first, and a crowd of both that is killed again and again; see turns_test.go. The scripts have
//
//	one, other               the command interlock of the two versions
//	one-probe, other-probe   testdata/mixed/probe, built from the two versions
//	$LOCK                    a name that no other script uses
//	[rw] [sem] [election] [leases] [sessions] [break] [waiters]   what the engine has
func TestMixedVersions(t *testing.T) {
	t.Parallel()
	longrun.Only(t) // it builds two commands with every engine
	programs := versions(t)
	for name, start := range mixedEngines() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := start(t)
			has := abilities(t, url)
			for _, first := range []string{"old", "new"} {
				t.Run(first+" first", func(t *testing.T) {
					p := scripts("testdata/mixed", false, func(env *testscript.Env) error {
						path := env.Getenv("PATH")
						path = filepath.Join(programs, "with-"+first) + string(filepath.ListSeparator) + path
						env.Setenv("PATH", path)
						env.Setenv("INTERLOCK_URL", url)
						env.Setenv("LOCK", first+"-"+scriptName(env))
						return nil
					})
					p.Condition = func(word string) (bool, error) {
						ok, known := has[word]
						if !known {
							return false, fmt.Errorf("no condition %q", word)
						}
						return ok, nil
					}
					testscript.Run(t, p)
				})
			}
			t.Run("turns", func(t *testing.T) { takeTurns(t, programs, url) })
		})
	}
}

// mixedEngines are the engines that processes share. A cluster speaks to each server as one Redis does: only a long run
// has it. The earlier version cannot read the marks of Redlock's nodes, and refuses them.
func mixedEngines() map[string]func(t *testing.T) string {
	all := map[string]func(t *testing.T) string{
		"file": func(t *testing.T) string { return "file://" + t.TempDir() },
	}
	for i, topology := range redisTopologies {
		if i == 0 || longrun.On() && topology.name == "cluster" {
			all["redis "+topology.name] = func(t *testing.T) string { return topology.start(t) + "&check=none" }
		}
	}
	for _, e := range sessionEngines {
		all[e.scheme] = func(t *testing.T) string {
			url := fmt.Sprintf("%s://%s:%s@%s%s", e.scheme, e.user, enginePassword, e.start(t), e.tail)
			if e.scheme == "postgres" {
				url += "?check=none"
			}
			return url
		}
	}
	return all
}

// abilities are the conditions of the scripts.
func abilities(t *testing.T, url string) map[string]bool {
	t.Helper()
	d, err := driver.DefaultMux.Open(t.Context(), url, driver.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	traits := d.Traits()
	has := func(a driver.Ability) bool {
		_, lacks := traits.Lacking(a)
		return !lacks
	}
	both := traits.Engine != "file" // the earlier version has only mutexes and elections in files
	return map[string]bool{
		"rw": both && traits.Supports(driver.KindRWMutex), "sem": both && traits.Supports(driver.KindSemaphore),
		"election": traits.Supports(driver.KindElection), "leases": traits.Lifetime == driver.Leases,
		"sessions": traits.Lifetime == driver.Sessions, "break": has(driver.Breaking), "waiters": has(driver.Waiters),
	}
}

// versions builds the programs of both versions, and returns the folder in which they are: old, new, and for the
// scripts with-old and with-new, named after the version that is "one".
func versions(t *testing.T) string {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), "git", "-C", root, "cat-file", "-e", previous+"^{commit}").
		CombinedOutput(); err != nil {
		why := fmt.Sprintf("the earlier version is commit %.12s, which is not here: in a shallow clone run git fetch "+
			"--unshallow; git says %q (%v)", previous, strings.TrimSpace(string(out)), err)
		if servers.Required("history") { // not "all": a checkout without history is complete in all else
			t.Fatal(why + "; INTERLOCK_REQUIRE wants it")
		}
		t.Skip(why)
	}
	source, programs := t.TempDir(), t.TempDir()
	runIn(t, root, "sh", "-c", `git archive "$1" | tar -x -C "$2"`, "sh", previous, source)
	probe := filepath.Join("testdata", "mixed", "probe")
	earlier := filepath.Join(source, "cmd", "interlock")
	// The probe is this tree's in both: what differs is the library below it.
	if err := os.CopyFS(filepath.Join(earlier, "testdata", "mixed-probe"), os.DirFS(probe)); err != nil {
		t.Fatal(err)
	}
	args := []string{"build", "-tags=full", "-buildvcs=false", "-ldflags=-w", "-o"}
	runIn(t, earlier, "go", append(args, filepath.Join(programs, "old")+"/", ".", "./testdata/mixed-probe")...)
	old := filepath.Join(programs, "old")
	if err := os.Rename(filepath.Join(old, "mixed-probe"), filepath.Join(old, "probe")); err != nil {
		t.Fatal(err)
	}
	runIn(t, ".", "go", append(args, filepath.Join(programs, "new")+"/", ".", "./"+probe)...)
	pair(t, programs, "old", "new")
	pair(t, programs, "new", "old")
	return programs
}

// pair names the programs of two versions as the scripts do.
func pair(t *testing.T, programs, one, other string) {
	t.Helper()
	dir := filepath.Join(programs, "with-"+one)
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	names := map[string]string{
		"one": one + "/interlock", "one-probe": one + "/probe", "other": other + "/interlock",
		"other-probe": other + "/probe",
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if err := os.Symlink(filepath.Join(programs, names[name]), filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
}

// runIn runs a program in a folder. A workspace that the environment names is not that of the earlier version.
func runIn(t *testing.T, dir, program string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOWORK=")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", cmd, err, out)
	}
}
