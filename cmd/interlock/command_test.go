package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/drivertest/faulty"
)

// result is what a command that runs in this process leaves behind.
type result struct {
	code           int
	stdout, stderr string
}

// command runs the command with an environment of its own.
func command(t *testing.T, env map[string]string, args ...string) result {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code := run(t.Context(), args, strings.NewReader(""), &stdout, &stderr, func(name string) string {
		return env[name]
	})
	return result{code, stdout.String(), stderr.String()}
}

// want checks the exit code and, if they are not empty, parts of the streams.
func (r result) want(t *testing.T, code int, stdout, stderr string) {
	t.Helper()
	if r.code != code || !strings.Contains(r.stdout, stdout) || !strings.Contains(r.stderr, stderr) {
		t.Errorf("got exit code %d, stdout %q, stderr %q; want %d, %q, %q", r.code, r.stdout, r.stderr, code, stdout,
			stderr)
	}
}

// acquireOn takes a lock on w and returns its handle.
func acquireOn(t *testing.T, w *world, args ...string) grantObject {
	t.Helper()
	r := command(t, nil, append([]string{"acquire", "nightly", "--url", "faulty://" + w.name}, args...)...)
	r.want(t, exitOK, "", "")
	var g grantObject
	if err := json.Unmarshal([]byte(r.stdout), &g); err != nil {
		t.Fatalf("%q: %v", r.stdout, err)
	}
	return g
}

func TestHandle_HoldsTheLockUntilItIsReleased(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	url := map[string]string{"INTERLOCK_URL": "faulty://" + w.name}
	g := acquireOn(t, w, "--label", "by hand")
	command(t, url, "acquire", "nightly", "-n").want(t, exitHeld, "", `"nightly" is held by`)
	command(t, url, "acquire", "nightly", "--wait", "20ms").want(t, exitHeld, "",
		`gave up after 20ms: "nightly" is held by`)
	command(t, url, "renew", g.Handle).want(t, exitOK, `"nightly" is held for another 30s`, "")
	command(t, url, "get", "nightly").want(t, exitOK, `by hand`, "") // a renewal keeps what operators see
	withHandle := map[string]string{"INTERLOCK_URL": "faulty://" + w.name, "INTERLOCK_HANDLE": g.Handle}
	command(t, withHandle, "release", "-o", "json").want(t, exitOK, `"released":true`, "")
	command(t, url, "get", "nightly").want(t, exitNone, "nightly is free", "")
	command(t, url, "release", g.Handle).want(t, exitOK, `"nightly" was already released`, "")
	command(t, url, "renew", g.Handle).want(t, exitLost, "", `"nightly" was already released`)
}

func TestHandle_IsThatOfALease(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	url := map[string]string{"INTERLOCK_URL": "faulty://" + w.name}
	taken := acquireOn(t, w)
	lease, err := w.other.Adopt(t.Context(), taken.Handle)
	if err != nil {
		t.Fatal(err)
	}
	for _, word := range []string{"renew", "release"} {
		command(t, url, word, taken.Handle).want(t, exitLost, "", `another client has adopted it`)
	}
	given, err := lease.Handle()
	if err != nil {
		t.Fatal(err)
	}
	command(t, url, "renew", given).want(t, exitOK, `"nightly" is held for another 30s`, "")
	if err := lease.Err(); err != nil {
		t.Errorf("after a renewal by the handle: %v", err)
	}
	command(t, url, "release", given).want(t, exitOK, `"nightly" is given back`, "")
	_, err = w.other.Adopt(t.Context(), given)
	if !errors.Is(err, interlock.ErrLost) {
		t.Errorf("the handle of what was released: %v", err)
	}

	foreign, err := driver.ParseHandle(taken.Handle)
	if err != nil {
		t.Fatal(err)
	}
	foreign.Engine = "etcd"
	command(t, url, "renew", foreign.Encode()).want(t, exitUsage, "",
		"the handle is of a hold on etcd, and this is memory")
}

func TestHandle_EndsWithItsLease(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g := acquireOn(t, w, "--lease", "50ms")
	lease, err := w.other.Lock(t.Context(), "nightly") // waits for it
	if err != nil {
		t.Fatal(err)
	}
	for _, word := range []string{"renew", "release"} {
		command(t, nil, word, "--url", "faulty://"+w.name, g.Handle).want(t, exitLost, "", `no longer holds "nightly"`)
	}
	if err := lease.Unlock(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestHandle_NamedOwnerReenters(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first := acquireOn(t, w, "--owner", "deploy-7")
	second := acquireOn(t, w, "--owner", "deploy-7")
	if first.Token != second.Token {
		t.Errorf("tokens %d and %d of one owner differ", first.Token, second.Token)
	}
	command(t, nil, "acquire", "nightly", "-n", "--owner", "deploy-8", "--url", "faulty://"+w.name).want(t, exitHeld,
		"", "(owner deploy-7)")
}

// A lost reply leaves the lock taken by a request that nobody knows of, and a lost request may still arrive, unless
// both are undone.
func TestAcquire_WhoseOutcomeIsUnknown_LeavesNothingBehind(t *testing.T) {
	t.Parallel()
	for name, lost := range map[string]faulty.Part{"Reply": faulty.Reply, "Request": faulty.Request} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.control.Rules(faulty.Rule{Op: faulty.Acquire, Drop: lost})
			r := command(t, nil, "acquire", "nightly", "--url", "faulty://"+w.name)
			r.want(t, exitUnavailable, "", "the engine did not answer")
			if strings.Contains(r.stderr, "warning") {
				t.Errorf("the undoing is confirmed, so there is nothing to warn of: %s", r.stderr)
			}
			lease, err := w.other.TryLock(t.Context(), "nightly")
			if err != nil {
				t.Fatalf("the lock should be free: %v", err)
			}
			if err := lease.Unlock(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestBreak(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	url := map[string]string{"INTERLOCK_URL": "faulty://" + w.name}
	lease, err := w.other.Lock(t.Context(), "nightly")
	if err != nil {
		t.Fatal(err)
	}
	command(t, url, "break", "nightly").want(t, exitUsage, "", "no terminal to ask at")
	command(t, url, "break", "nightly", "--token", "1", "--yes").want(t, exitHeld, "", "is held by other:1")
	if err := lease.Err(); err != nil {
		t.Fatalf("the holder has lost the lock by a refused break: %v", err)
	}
	command(t, url, "break", "nightly", "--kind", "sem", "--yes").want(t, exitNone, "", "not held")
	command(t, url, "break", "nightly", "--token", utoa(lease.Token()), "--yes").want(t, exitOK,
		"is broken: it was held, token "+utoa(lease.Token()), "")
	select {
	case <-lease.Lost():
	case <-time.After(20 * time.Second):
		t.Fatal("the holder was not told")
	}
	command(t, url, "break", "nightly", "--yes", "-o", "json").want(t, exitNone, "", `"code":"not_held"`)
}

func TestTopOnce_JudgesAnErrorAsLsDoes(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		err  error
		want string
	}{
		"refused":     {&interlock.RefusedError{Op: "list", Err: errors.New("NOPERM")}, "refused"},
		"unavailable": {&interlock.UnavailableError{Op: "list", Err: errors.New("away")}, "unavailable"},
		"failed":      {errors.New("odd"), "failed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			told := make(map[string]result)
			for _, look := range []string{"ls", "top"} {
				t.Run(look, func(t *testing.T) { // a world gives the bad way to one command only
					w := newWorld(t)
					w.control.Rules(faulty.Rule{Op: faulty.Locks, Err: row.err})
					told[look] = command(t, nil, look, "--url", "faulty://"+w.name, "-o", "json")
				})
			}
			ls, top := told["ls"], told["top"]
			if top.code != ls.code || top.stderr != ls.stderr || !strings.Contains(ls.stderr, `"code":"`+row.want+`"`) {
				t.Errorf("ls ends with %d, %s; top with %d, %s", ls.code, ls.stderr, top.code, top.stderr)
			}
		})
	}
}

func TestCompletion_OfAnEngineThatHangs_IsCutShort(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.control.Pause()
	began := time.Now()
	command(t, nil, "__complete", "--timeout", "1h", "--url", "faulty://"+w.name, "get", "").want(t, exitOK, ":4", "")
	if took := time.Since(began); took > patience { // the limit is 300 ms; the rest is for busy machines
		t.Errorf("took %v", took)
	}
	w.control.Resume()
}

func TestDoctor_OfAnEngineThatDoesNotAnswer_Fails(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.control.Rules(faulty.Rule{Err: &interlock.UnavailableError{}})
	command(t, nil, "doctor", "faulty://"+w.name, "--timeout", "2s").want(t, 2, "FAIL  lock", "")
}
