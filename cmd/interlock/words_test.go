package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
)

func TestDescribeHeld_SaysWhatTheEngineTells(t *testing.T) {
	now := time.Date(2026, 11, 21, 2, 10, 15, 0, time.Local)
	for want, held := range map[string]interlock.HeldError{
		`"nightly" is held`:           {Name: "nightly"},
		`"nightly" is held by host:1`: {Name: "nightly", Client: "host:1"},
		`"nightly" is held by host:1 (owner x) since 02:10:03 (12s ago), token 123; lease ends in 18s unless renewed`: {
			Name: "nightly", Client: "host:1", Owner: "x", Token: 123, Since: now.Add(-12 * time.Second),
			Until: now.Add(18 * time.Second),
		},
		`"nightly" is held since 2026-11-18 00:10:15 (3d2h ago)`: {Name: "nightly", Since: now.Add(-74 * time.Hour)},
		// another clock
		`"nightly" is held since 02:10:16 (0s ago)`: {Name: "nightly", Since: now.Add(time.Second)},
		`"nightly" is held, token 7; lease ends in 0s unless renewed`: {
			Name: "nightly", Token: 7,
			Until: now.Add(-time.Hour),
		},
		`"a\nb" is held since 02:09:15 (1m0s ago), token 1844674407370`: {
			Name: "a\nb", Since: now.Add(-time.Minute),
			Token: 1844674407370,
		},
	} {
		if got := describeHeld(&held, now); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

func TestBudget_DefaultGraceFitsEveryLease(t *testing.T) {
	for lease := time.Second; lease < 2*time.Hour; lease += lease / 7 {
		b := newBudget(lease, defaultGrace(lease))
		if err := b.check(); err != nil {
			t.Error(err)
		}
		// TERM must not come before a renewal had a second chance.
		if term := lease - b.drift - b.margin - b.grace; term < 2*b.renewal {
			t.Errorf("lease %v: TERM after %v, second renewal after %v", lease, term, 2*b.renewal)
		}
	}
}

func TestJudge_SaysWhatIsMostCertain(t *testing.T) {
	for name, row := range map[string]struct {
		err  error
		exit int
		word string
	}{
		"usage":       {usage("x"), 64, "usage"},
		"held":        {&interlock.HeldError{Cause: errors.New("late")}, 75, "held"},
		"gave up":     {&waitedError{&interlock.HeldError{}, 0}, 75, "held"},
		"own code":    {exitWith(0, &interlock.HeldError{}), 0, "held"},
		"lost":        {&interlock.LostError{}, 79, "lost"},
		"unavailable": {&interlock.UnavailableError{}, 69, "unavailable"},
		"refused":     {&interlock.RefusedError{}, 69, "refused"},
		"not opened": {
			exitWith(69, &openFailedError{&driver.URL{}, fmt.Errorf("x: %w", &interlock.RefusedError{})}),
			69, "refused",
		},
		"not sent":    {&interlock.UnavailableError{NotSent: true}, 69, "unavailable"},
		"both":        {errors.Join(&interlock.RefusedError{}, &interlock.UnavailableError{}), 69, "unavailable"},
		"unsupported": {interlock.ErrUnsupported, 64, "unsupported"},
		"not held":    {interlock.ErrNotHeld, 1, "not_held"},
		"signal":      {&signalError{15}, 143, "interrupted"},
		"not found":   {commandError("x", errors.ErrUnsupported), 126, "not_executable"},
		"anything":    {errors.New("x"), 125, "failed"},
	} {
		got := judge(row.err)
		if got.exit != row.exit || got.word != row.word {
			t.Errorf("%s: got %d %s, want %d %s", name, got.exit, got.word, row.exit, row.word)
		}
		if helps := row.word == "held" || row.word == "unavailable" ||
			row.word == "interrupted"; got.retryable != helps {
			t.Errorf("%s: trying again helps: %v", name, got.retryable)
		}
	}
}

func TestDuration_IsAsGoWritesIt_OrSeconds(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"5": 5 * time.Second, "0.5": time.Second / 2, ".5": time.Second / 2, "0": 0, "-3": -3 * time.Second,
		"+2":    2 * time.Second,
		"1m30s": 90 * time.Second, "500ms": time.Second / 2, "1h": time.Hour,
	} {
		var got time.Duration
		if err := durationOf(&got, time.Minute).Set(text); err != nil || got != want {
			t.Errorf("%q: %v, %v; want %v", text, got, err, want)
		}
	}
	for _, text := range []string{
		"", ".", "-", "5x", "1e3", "0x10", "inf", "nan", "1.2.3", "5 s",
		"99999999999999999999",
	} {
		got := time.Minute
		if err := durationOf(&got, time.Minute).Set(text); err == nil || got != time.Minute {
			t.Errorf("%q: %v, %v; want an error, and no change", text, got, err)
		}
	}
}

func TestWarnings_AreOnOneLine(t *testing.T) {
	var stderr bytes.Buffer
	a := &app{stderr: &stderr, tellsChecks: true}
	engine, client := a.engineWarnings(), a.clientWarnings()
	engine.Error("redis: eviction: keys can be evicted", "check", "eviction", "advice",
		"set maxmemory-policy noeviction")
	engine.With("session", "7").Warn("zk: session lost", "err", errors.New("two\nlines"))
	engine.Info("zk: connected")
	client.Warn("interlock: renewal failed", "lock", "a b")
	client.Error("interlock: lock lost") // whoever holds it says so
	a.tellsChecks = false
	engine.Warn("redis: persistence: none", "check", "persistence")
	want := "interlock: warning: redis: eviction: keys can be evicted (set maxmemory-policy noeviction, " +
		"check=none in the URL skips this check)\n" +
		"interlock: warning: zk: session lost: two; lines (session 7)\n" +
		"interlock: warning: renewal failed (lock \"a b\")\n"
	if got := stderr.String(); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

func TestReleaseTime_EndsWithTheLease(t *testing.T) {
	b := budget{drift: 100 * time.Millisecond}
	for name, row := range map[string]struct {
		timeout  time.Duration
		deadline time.Time
		least    time.Duration
		most     time.Duration
	}{
		"no lease":     {10 * time.Second, time.Time{}, 10 * time.Second, 10 * time.Second},
		"much is left": {10 * time.Second, time.Now().Add(time.Minute), 10 * time.Second, 10 * time.Second},
		"less is left": {
			10 * time.Second, time.Now().Add(5 * time.Second), 2 * time.Second,
			5100 * time.Millisecond,
		},
		"nothing is left":      {10 * time.Second, time.Now().Add(-time.Minute), minReleaseTime, minReleaseTime},
		"answers come at once": {time.Millisecond, time.Now().Add(-time.Minute), time.Millisecond, time.Millisecond},
	} {
		a := &app{timeout: row.timeout}
		if got := a.releaseTime(row.deadline, b); got < row.least || got > row.most {
			t.Errorf("%s: got %v, want %v to %v", name, got, row.least, row.most)
		}
	}
}

func TestEngineError_SaysWhatFailedOnce(t *testing.T) {
	want := &interlock.UnavailableError{Op: "acquire", Name: "nightly", Err: errors.New("broken")}
	for name, err := range map[string]error{"bare": want.Err, "by the driver": want} {
		if got := engineError("acquire", "nightly", err); got.Error() != want.Error() {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
}

func TestExitCodes_TablesHaveEveryCode(t *testing.T) {
	source, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"0-63"}
	for _, code := range []int{
		exitUsage, exitUnavailable, exitHeld, exitLost, exitFailed, exitNotExecutable,
		exitNotFound,
	} {
		want = append(want, itoa(code))
	}
	want = append(want, itoa(exitSignal)+"+n")
	for text, lines := range map[string]*regexp.Regexp{
		string(source): regexp.MustCompile(`(?m)^//\t([0-9]\S*)  `),
		exitCodesText:  regexp.MustCompile(`(?m)^  ([0-9]\S*)  `),
	} {
		var got []string
		for _, line := range lines.FindAllStringSubmatch(text, -1) {
			got = append(got, line[1])
		}
		if !slices.Equal(got, want) {
			t.Errorf("got %v, want %v, in:\n%s", got, want, text)
		}
	}
}

func TestEngines_HelpHasEveryScheme(t *testing.T) {
	ofTests := []string{"faulty", "stuck"}
	for _, scheme := range driver.DefaultMux.Schemes() { // this test has all engines; see builds_test.go
		if !slices.Contains(ofTests, scheme) && !regexp.MustCompile(`[^+a-z]`+regexp.QuoteMeta(scheme)+
			`://`).MatchString(enginesText) {
			t.Errorf("%s:// is not in:\n%s", scheme, enginesText)
		}
	}
	for other, scheme := range ourWords {
		if known := driver.DefaultMux.Schemes(); slices.Contains(known, other) || !slices.Contains(known, scheme) {
			t.Errorf("%s:// should be unknown, and %s:// an engine's", other, scheme)
		}
	}
}

func TestPrintable_KeepsTablesAndTerminalsWhole(t *testing.T) {
	for in, want := range map[string]string{
		"stock:42": "stock:42", "a b": `"a b"`, "a\tb": `"a\tb"`, "\x1b[31mred": `"\x1b[31mred"`, "锁": "锁", "": "",
		`a"b`: `"a\"b"`,
	} {
		if got := printable(in); got != want {
			t.Errorf("%q: got %s, want %s", in, got, want)
		}
	}
}

func FuzzParseHandle(f *testing.F) {
	f.Add((&handle{driver.Handle{
		Engine: "redis", Kind: "mutex", Name: "nightly", ID: "id", Token: 1, Lease: time.Second, Owner: "me",
	}}).String())
	f.Add("")
	f.Add("e30")
	f.Fuzz(func(t *testing.T, s string) {
		h, err := parseHandle(s)
		if err != nil {
			return
		}
		again, err := parseHandle(h.String())
		if err != nil || *again != *h {
			t.Errorf("%q: %+v became %+v (%v)", s, h, again, err)
		}
	})
}

func TestHolder_SaysIfNobodyHoldsTheLock(t *testing.T) {
	for _, c := range []struct {
		h            driver.Holder
		shown, state string
	}{
		{driver.Holder{Client: "host:1", Owner: "a"}, "host:1", ""},
		{driver.Holder{Client: "host:1", Retained: true}, "host:1 (retained)", "retained"},
		{driver.Holder{Client: "host:1", Owner: "a", Cooldown: true}, "host:1 (cooldown)", "cooldown"},
	} {
		if shown, state := holder(c.h), stateMark(c.h.Retained, c.h.Cooldown); shown != c.shown || state != c.state {
			t.Errorf("%+v: %q, %q", c.h, shown, state)
		}
	}
}

// A name is anybody's, and a terminal obeys what it is shown.
func TestJSON_HasNoCharacterThatATerminalObeys(t *testing.T) {
	const name = "a\u009b2J\u202eb\u2066c\u007f<&é"
	line, err := jsonLine(map[string]string{"name": name})
	if err != nil || string(line) != `{"name":"a\u009b2J\u202eb\u2066c\u007f<&é"}`+"\n" {
		t.Errorf("got %q, %v", line, err)
	}
	var back map[string]string
	if err := json.Unmarshal(line, &back); err != nil || back["name"] != name {
		t.Errorf("read back as %q, %v", back, err)
	}
}

func TestReadURL_WarnsOfAPasswordThatEverybodyMayRead(t *testing.T) {
	for _, row := range []struct {
		url  string
		mode os.FileMode
		want bool
	}{
		{"redis://:sesame@localhost", 0o644, true},
		{"redis://:sesame@localhost", 0o640, false},
		{"redis://:sesame@localhost", 0o600, false},
		{"redis://localhost", 0o644, false},
	} {
		path := filepath.Join(t.TempDir(), "url")
		if err := errors.Join(os.WriteFile(path, []byte(row.url), 0o600), os.Chmod(path, row.mode)); err != nil {
			t.Fatal(err)
		}
		var said string
		_, err := readURL(path, func(form string, args ...any) { said += fmt.Sprintf(form, args...) })
		if err != nil || (said != "") != row.want || strings.Contains(said, "sesame") {
			t.Errorf("%+v: said %q, %v", row, said, err)
		}
	}
}
