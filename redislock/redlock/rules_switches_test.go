package redlock

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A rule is taken out by a switch, which the test puts into a copy of the source. The copy is given to the compiler instead of
// the file, and the test runs itself again.

// setOff takes out the rule with that switch; it is nil unless the switches have been put in.
var setOff func(name string)

// lever is where a switch goes: the text old, which is at one place of the file, becomes is.
type lever struct{ file, old, is string }

var levers = []lever{
	{"driver.go", "quorum: len(dials)/2 + 1", `quorum: unless("majority", len(dials)/2+1, 2)`},
	{"judge.go", ">= rd.c.d.opts.NodeTimeout\n", `>= rd.c.d.opts.NodeTimeout && !off("deadline")` + "\n"},
	{"votes.go", "\treturn sent, last.Sent", "\tif off(\"before\") {\n\t\tsent = time.Now()\n\t}\n\treturn sent, last.Sent"},
	{
		"votes.go", "{ return v.grant.Sent.Add(v.grant.Lease) }",
		`{ return v.grant.Sent.Add(v.grant.Lease + unless("elapsed", 0, patienceOfATest)) }`,
	},
	{"acquire.go", "if left(sent, lease) <= 0 {", `if left(sent, lease) <= 0 && !off("elapsed") {`},
	{"votes.go", "return lease - drift(lease)", `return lease - unless("drift", drift(lease), 0)`},
	{
		"release.go", "\t\t\terr := rd.free(i, r, until)\n",
		"\t\t\terr := errFreed\n\t\t\tc.mu.Lock()\n\t\t\thas := rd.votes[i].state == granted\n\t\t\tc.mu.Unlock()\n" +
			"\t\t\tif has || !off(\"everywhere\") {\n\t\t\t\terr = rd.free(i, r, until)\n\t\t\t}\n",
	},
	{"renew.go", "h, q := &r.holds[i], r.d.quorum", `h, q := &r.holds[i], unless("renewal", r.d.quorum, 1)`},
	{
		"judge.go", "if wait := since.Add(grace).Sub(now); wait > 0 {",
		`if wait := since.Add(unless("grace", grace, patienceOfATest)).Sub(now); wait > 0 {`,
	},
	{
		"acquire.go", "\t\tvotes, err = rd.confirm(ctx, tokens)\n",
		"\t\tif !off(\"write back\") {\n\t\t\tvotes, err = rd.confirm(ctx, tokens)\n\t\t}\n",
	},
	{"acquire.go", "tokens := common(blocks, c.d.quorum)\n", "tokens := common(blocks, unless(\"median\", c.d.quorum, 1))\n"},
	{
		"claim.go", "= rd.id, shown(rd.id, r.Owner), try\n",
		"= rd.id+unless(\"same value\", \"\", time.Now().String()[20:29]), shown(rd.id, r.Owner), try\n",
	},
	{"guard.go", `if word == "ok" {`, `if word == "ok" || off("rest") {`},
	{"judge.go", "if left := rd.yieldAt.Sub(now); left > 0 {", `if left := rd.yieldAt.Sub(now); left > 0 || off("yield") {`},
}

// The files that the levers need, and the one that gives the test its hand on them.
const (
	switchboard = `package redlock

import (
	"sync/atomic"
	"time"
)

var offNow atomic.Value

const patienceOfATest = time.Minute

func off(name string) bool { now, _ := offNow.Load().(string); return now == name }

func unless[T any](name string, on, out T) T {
	if off(name) {
		return out
	}
	return on
}
`
	handle = `package redlock

func init() { setOff = func(name string) { offNow.Store(name) } }
`
)

// runWithSwitches runs the test again with the switches put in.
func runWithSwitches(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds the package once more")
	}
	dir := t.TempDir()
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	sources := map[string]string{"switchboard.go": switchboard, "switchboard_test.go": handle}
	for _, l := range levers {
		if sources[l.file] == "" {
			text, err := os.ReadFile(l.file)
			if err != nil {
				t.Fatal(err)
			}
			sources[l.file] = string(text)
		}
		if n := strings.Count(sources[l.file], l.old); n != 1 {
			t.Fatalf("%q is at %d places of %s", l.old, n, l.file)
		}
		sources[l.file] = strings.Replace(sources[l.file], l.old, l.is, 1)
	}
	overlay := struct{ Replace map[string]string }{make(map[string]string)}
	for name, text := range sources {
		copied := filepath.Join(dir, name)
		if err := os.WriteFile(copied, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		overlay.Replace[filepath.Join(here, name)] = copied
	}
	list, err := json.Marshal(overlay)
	if err != nil {
		t.Fatal(err)
	}
	listed := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(listed, list, 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{"test", "-overlay", listed, "-v", "-count=1", "-run", "^TestRules_AreKeptAndNecessary$", "."}
	out, err := exec.CommandContext(t.Context(), "go", args...).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "noticed: ") {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Logf("%s", out)
}
