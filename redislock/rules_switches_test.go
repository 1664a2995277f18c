package redislock

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A rule that Go code carries is taken out by a switch, which the test puts into a copy of the source. The copy is given
// to the compiler instead of the file, and the test runs itself again.

// setOff takes out the rule with that switch; it is nil unless the switches have been put in.
var setOff func(name string)

// lever is where a switch goes: the text old, which is at one place of the file, becomes is.
type lever struct{ name, file, old, is string }

var levers = []lever{
	{
		"drift", "acquire.go", "a.sent.Add(elapsed - elapsed/100 - 2*time.Millisecond)",
		`unless("drift", a.trusted(elapsed), a.sent.Add(elapsed))`,
	},
	{
		"receipt", "acquire.go", "a.trusted(elapsed)",
		`unless("receipt", a.sent.Add(elapsed-elapsed/100-2*time.Millisecond), p.received)`,
	},
	{"short life", "acquire.go", "Lease: p.grant.lease,", `Lease: unless("short life", p.grant.lease, a.r.Lease),`},
	{"link", "acquire.go", "p.grant.link == a.answer.link", `(off("link") || p.grant.link == a.answer.link)`},
	{"zero", "acquire.go", "p.grant.link != 0", `(off("zero") || p.grant.link != 0)`},
	{"jump", "acquire.go", "!a.granted(p).After(p.received)", `(off("jump") || !a.granted(p).After(p.received))`},
	{"back", "acquire.go", "\t\tp.grant.now >= a.answer.now", `(off("back") || p.grant.now >= a.answer.now)`},
	{"again", "ear.go", "w.again = true", `w.again = !off("again")`},
	{"beat", "acquire.go", "beat := a.claim/2 -", `beat := unless("beat", a.claim/2, a.claim) -`},
	{"next", "acquire.go", "if a.answer.next > 0 {", `if a.answer.next > 0 && !off("next") {`},
	{"replicas", "acquire.go", "a.d.opts.Replicas == 0 &&", `(off("replicas") || a.d.opts.Replicas == 0) &&`},
	{"acked", "acquire.go", "answer.Acked < a.d.opts.Replicas {", `answer.Acked < a.d.opts.Replicas && !off("acked") {`},
	{"open", "entry.go", "e.open = true", `e.open = !off("open")`},
	{"gone", "entry.go", "if d.gone.has(r.ID) {", `if d.gone.has(r.ID) && !off("gone") {`},
	{"weight", "acquire.go", "r.Limit > 0 && r.Weight > r.Limit:", `r.Limit > 0 && r.Weight > r.Limit && !off("weight"):`},
	{
		"kind", "keys.go", "b = append(b, key.Kind...)\n\tb = append(b, ':')",
		`b = append(b, unless("kind", string(key.Kind)+":", "")...)`,
	},
	{
		"listen", "acquire.go", "if err := a.listen(ctx); err != nil {\n\t\treturn err\n\t}\n\ta.setWay('s')",
		"if err := unless(\"listen\", a.listen, func(context.Context) error { return nil })(ctx); err != nil {\n" +
			"\t\treturn err\n\t}\n\ta.setWay('s')",
	},
	{
		"slot", "keys.go", "\"floor:{\"...)\n\tb = append(b, tags()[slot]...)",
		"\"floor:{\"...)\n\tb = append(b, unless(\"slot\", tags()[slot], tags()[0])...)",
	},
}

// The files that the levers need, and the one that gives the test its hand on them.
const (
	switchboard = `package redislock

var offNow string

func off(name string) bool { return offNow == name }

func unless[T any](name string, on, out T) T {
	if off(name) {
		return out
	}
	return on
}
`
	handle = `package redislock

func init() { setOff = func(name string) { offNow = name } }
`
)

// TestRules_OfTheDriver_AreNecessary takes out one rule after the other, and its check must notice.
func TestRules_OfTheDriver_AreNecessary(t *testing.T) {
	if setOff == nil {
		runWithSwitches(t)
		return
	}
	for _, r := range driverRules {
		for _, name := range r.switches {
			t.Run(r.name+"/"+name, func(t *testing.T) {
				setOff(name)
				defer setOff("")
				if err := r.run(t); err == nil {
					t.Fatal("the check does not notice that the rule is missing")
				} else {
					t.Logf("noticed: %v", err)
				}
			})
		}
	}
}

// runWithSwitches runs the test again with the switches put in.
func runWithSwitches(t *testing.T) {
	t.Helper()
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
	args := []string{"test", "-overlay", listed, "-v", "-count=1", "-run", "^" + t.Name() + "$", "."}
	out, err := exec.CommandContext(t.Context(), "go", args...).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "noticed: ") {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Logf("%s", out)
}
