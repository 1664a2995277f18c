package driver

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestParseURL_TakesItApart(t *testing.T) {
	for raw, want := range map[string]URL{
		"mem://":                    {Scheme: "mem"},
		"mem://jobs":                {Scheme: "mem", Hosts: []string{"jobs"}},
		"file:///var/lib/app/locks": {Scheme: "file", Path: "/var/lib/app/locks"},
		"file:///a%20b/%E9%94%81":   {Scheme: "file", Path: "/a b/锁"},
		"REDIS://localhost:6379":    {Scheme: "redis", Hosts: []string{"localhost:6379"}},
		"redis+sentinel://me:s3cr3t@h1,h2:26379,[::1]:6379/mymaster?db=0": {
			Scheme: "redis+sentinel", User: "me", Password: "s3cr3t",
			Hosts: []string{"h1", "h2:26379", "[::1]:6379"}, Path: "/mymaster",
		},
		"mysql://me:p@ss:w%25rd@host:3306/db": {
			Scheme: "mysql", User: "me", Password: "p@ss:w%rd", Hosts: []string{"host:3306"}, Path: "/db",
		},
	} {
		got, err := ParseURL(raw)
		if err != nil {
			t.Errorf("%s: %v", raw, err)
			continue
		}
		if got.Scheme != want.Scheme || got.User != want.User || got.Password != want.Password ||
			got.Path != want.Path || !slices.Equal(got.Hosts, want.Hosts) {
			t.Errorf("%s: got %+v, want %+v", raw, got, want)
		}
	}
}

func TestParseURL_RefusesWithoutShowingThePassword(t *testing.T) {
	for _, raw := range []string{
		"", "hunter2", "://x", "redis:hunter2", "1redis://me:hunter2@h", "redis://me:hunter2@h1,,h2",
		"redis://me:hunter2@h/%zz", "redis://me:hunter2%zz@h", "redis://me:hunter2@h?x=%zz", "redis://me:hunter2@a b",
		"redis://me:hunter2@h#x", "redis://me:hunter2@h?a;b", "hunter2://",
	} {
		u, err := ParseURL(raw)
		if raw == "hunter2://" { // an unknown scheme is not ParseURL's business
			continue
		}
		if err == nil {
			t.Errorf("%q is taken as %+v", raw, u)
			continue
		}
		if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: the error shows the password: %v", raw, err)
		}
	}
}

func TestURL_String_HidesSecrets(t *testing.T) {
	u, err := ParseURL("redis://me:hunter2@h1,h2/0?lease=3s&auth_token=hunter2")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := u.String(), "redis://me:xxxxx@h1,h2/0?auth_token=xxxxx&lease=3s"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func FuzzParseURL(f *testing.F) {
	for _, seed := range []string{"mem://", "file:///a%20b", "redis://u:p@h1,h2:1/x?y=z", "a://@", "x://:@,"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		u, err := ParseURL(raw)
		if err != nil {
			return
		}
		shown := u.String()
		if len(u.Password) > 8 && strings.Contains(shown, u.Password) &&
			!strings.Contains(strings.Join(u.Hosts, ",")+u.Path+u.User+u.Query.Encode(), u.Password) {
			t.Errorf("%q shows its password as %q", raw, shown)
		}
		if _, err := ParseURL(shown); err != nil {
			t.Errorf("%q is shown as %q, which cannot be read: %v", raw, shown, err)
		}
	})
}

func TestParams_AreStrict(t *testing.T) {
	read := func(query string) (p *Params, d time.Duration, n int, b bool, s string) {
		u, err := ParseURL("x://h?" + query)
		if err != nil {
			t.Fatal(err)
		}
		p = u.Params()
		return p, p.Duration("timeout", time.Second), p.Int("db", 0, 0), p.Bool("tls", false), p.String("prefix", "il")
	}
	p, d, n, b, s := read("timeout=2s&db=3&tls=true&prefix=app")
	if err := p.Err(); err != nil || d != 2*time.Second || n != 3 || !b || s != "app" {
		t.Errorf("got %v %v %v %v, %v", d, n, b, s, err)
	}
	p, d, n, b, s = read("")
	if err := p.Err(); err != nil || d != time.Second || n != 0 || b || s != "il" {
		t.Errorf("defaults: got %v %v %v %v, %v", d, n, b, s, err)
	}
	for query, says := range map[string]string{
		"timeout=2":      "positive duration such as 30s",
		"timeout=-2s":    "positive duration",
		"db=-1":          "at least 0",
		"db=x":           "whole number",
		"tls=perhaps":    "true or false",
		"db=1&db=2":      "given 2 times",
		"timeuot=3s":     `unknown query key "timeuot": this engine takes db, prefix, timeout, tls`,
		"PREFIX=app":     "unknown query key",
		"db=1&zz=1&aa=2": `"aa"`,
	} {
		p, _, _, _, _ := read(query)
		if err := p.Err(); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: got %v, want an error that says %q", query, err, says)
		}
	}
}

func TestMux_FindsTheEngineAndNamesTheMissingImport(t *testing.T) {
	var m Mux
	if _, err := m.Open(t.Context(), "x://", Config{}); err == nil ||
		!strings.Contains(err.Error(), "no engine is linked in") {
		t.Errorf("empty: %v", err)
	}
	opened := errors.New("opened")
	m.Register("x", func(_ context.Context, u *URL, c Config) (Driver, error) {
		if u.Hosts[0] != "h" || c.Logger == nil || c.Client != "me" {
			t.Errorf("opened with %+v, %+v", u, c)
		}
		return nil, opened
	})
	if _, err := m.Open(t.Context(), "X://h", Config{Client: "me"}); !errors.Is(err, opened) {
		t.Errorf("got %v", err)
	}
	for raw, says := range map[string]string{
		"y://":     "the engines linked in answer to x",
		"redis://": `add import _ "github.com/interlock-go/interlock/redislock"`,
		"no":       "must start with a scheme",
	} {
		if _, err := m.Open(t.Context(), raw, Config{}); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: got %v", raw, err)
		}
	}
	defer func() {
		if recover() == nil {
			t.Error("a scheme was registered twice")
		}
	}()
	m.Register("x", nil)
}

func TestErrors_MatchTheirSentinelAndUnwrap(t *testing.T) {
	cause := context.DeadlineExceeded
	for sentinel, err := range map[error]error{
		ErrHeld: &HeldError{
			Kind: KindMutex, Name: "a", Owner: "o", Client: "c", Token: 7, Since: time.Unix(0, 0),
			Until: time.Unix(9, 0), Cause: cause,
		},
		ErrLost:        &LostError{Kind: KindMutex, Name: "a", Token: 7, Reason: LostBroken, Cause: cause},
		ErrUnavailable: &UnavailableError{Op: "lock", Name: "a", Err: cause},
	} {
		for _, other := range []error{ErrHeld, ErrLost, ErrUnavailable, ErrReleased} {
			//nolint:errorlint // the sentinels themselves are compared
			if errors.Is(err, other) != (other == sentinel) {
				t.Errorf("%v: errors.Is(%v) is %v", err, other, errors.Is(err, other))
			}
		}
		if !errors.Is(err, cause) || !strings.Contains(err.Error(), `"a"`) {
			t.Errorf("got %v", err)
		}
	}
}

func TestIsDefinite_OnlyIfNothingCanHaveHappened(t *testing.T) {
	for err, want := range map[error]bool{
		&HeldError{}:                             true,
		&HeldError{Cause: context.Canceled}:      false,
		ErrUnsupported:                           true,
		ErrConflict:                              true,
		ErrDeadlock:                              true,
		ErrClosed:                                true,
		&UnavailableError{Err: ErrHeld}:          false,
		errors.New("connection reset"):           false,
		context.DeadlineExceeded:                 false,
		errors.Join(ErrHeld, ErrUnavailable):     false,
		errors.Join(ErrUnsupported, ErrConflict): true,
	} {
		if got := IsDefinite(err); got != want {
			t.Errorf("IsDefinite(%v) is %v", err, got)
		}
	}
}
