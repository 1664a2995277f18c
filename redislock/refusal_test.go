package redislock

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/servers"
	"github.com/interlock-go/interlock/redislock/conn"
)

// wantRefusal checks that err says that the server refused, why, and what to do.
func wantRefusal(t *testing.T, what string, err error, says, hint string, open bool) {
	t.Helper()
	refused := driver.Refusal(err)
	if refused == nil || refused.Open != open || driver.IsDefinite(err) == open {
		t.Errorf("%s: %v, want a refusal (open: %v)", what, err, open)
		return
	}
	if text := err.Error(); !strings.Contains(text, says) || !strings.Contains(refused.Hint, hint) ||
		strings.Contains(text, "user_script") {
		t.Errorf("%s: %q, want %q and %q", what, text, says, hint)
	}
}

func mustDo(t *testing.T, s *servers.RedisNode, args ...string) {
	t.Helper()
	if _, err := s.Do(t.Context(), args...); err != nil {
		t.Fatalf("%v: %v", args, err)
	}
}

func TestAcquire_ThatTheServerRefuses_SaysWhyAndTakesNothing(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		refuse     [][]string
		says, hint string
	}{
		"a user without the right to run scripts": {
			[][]string{{"ACL", "SETUSER", "bob", "-evalsha", "-eval"}}, "NOPERM", "rights that locking needs",
		},
		"a server without memory": {[][]string{{"CONFIG", "SET", "maxmemory", "1"}}, "OOM", "raise maxmemory"},
		"a server that has become a replica": {
			[][]string{{"REPLICAOF", "127.0.0.1", "1"}}, "replica", "name the primary",
		},
		"a list under the key": {
			[][]string{{"LPUSH", "interlock:mutex:x", "secret"}}, `"interlock:mutex:x" holds a value`, "another prefix",
		},
		"a string under the key": {
			[][]string{{"SET", "interlock:mutex:x", "sEcReT=="}}, "did not write", "another prefix",
		},
		"a one under the key": {[][]string{{"SET", "interlock:mutex:x", "1"}}, "did not write", "another prefix"},
		"a hash under the key": {
			[][]string{{"HSET", "interlock:mutex:x", "secret", "secret"}}, "did not write", "another prefix",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := servers.RedisServer(t, &servers.RedisOptions{Users: []string{"nobody off"}})
			option := soloOption(s.Addr())
			d, err := asUser(t, option, nil, []*servers.RedisNode{s}, userRights(t, "locking"))()
			if err != nil {
				t.Fatal(err)
			}
			defer d.Close()
			for _, command := range c.refuse {
				mustDo(t, s, command...)
			}
			for _, try := range []bool{true, false} {
				r := lockRequest(fmt.Sprint("id", try), "x")
				r.Try = try
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				_, err = d.Acquire(ctx, r)
				cancel()
				wantRefusal(t, fmt.Sprint("try ", try), err, c.says, c.hint, false)
				if text := fmt.Sprint(err); strings.Contains(strings.ToLower(text), "secret") ||
					strings.Contains(text, "hunter2") {
					t.Errorf("a secret is shown: %s", text)
				}
			}
			if len(d.entries) != 0 {
				t.Errorf("%d requests are remembered that have taken nothing", len(d.entries))
			}
		})
	}
}

func TestAcquire_ThatAScriptMayNotFinish_IsRefusedAndOpen(t *testing.T) {
	s := servers.RedisServer(t, &servers.RedisOptions{Users: []string{"nobody off"}})
	d, err := asUser(t, soloOption(s.Addr()), nil, []*servers.RedisNode{s}, userRights(t, "locking"))()
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	mustDo(t, s, "ACL", "SETUSER", "bob", "-set")
	_, err = d.Acquire(t.Context(), lockRequest("id", "x"))
	wantRefusal(t, "without SET", err, "", "rights that locking needs", true)
}

func TestAcquire_WithoutAServer_SaysThatNothingWasDone(t *testing.T) {
	s := servers.RedisServer(t, nil)
	d := open(t, soloOption(s.Addr()), nil)
	s.Kill()
	_, err := d.Acquire(t.Context(), lockRequest("first", "x")) // it may be on its way when the server ends
	if !errors.Is(err, driver.ErrUnavailable) || errors.Is(err, driver.ErrRefused) {
		t.Errorf("got %v", err)
	}
	unsent := driver.IsNotSent(err)
	_, err = d.Acquire(t.Context(), lockRequest("second", "x"))
	var broken *net.OpError
	if !driver.IsNotSent(err) || driver.IsDefinite(err) || !errors.As(err, &broken) {
		t.Errorf("got %v", err)
	}
	again := lockRequest("first", "x")
	if _, err = d.Acquire(t.Context(), again); !unsent && driver.IsNotSent(err) {
		t.Errorf("a copy of it may be under way, but it says %v", err)
	}
	s.Restart()
}

// A caller with less time than a call is tried again hears why it was, and that nothing was done.
func TestAcquire_WithLittleTime_SaysWhatTheServerAnsweredLast(t *testing.T) {
	for name, row := range map[string]struct {
		spoil func(t *testing.T, s *servers.RedisNode)
		says  string
	}{
		"a server that has become a replica": {func(t *testing.T, s *servers.RedisNode) {
			mustDo(t, s, "REPLICAOF", "127.0.0.1", "1")
		}, "the server is a replica"},
		"a server that runs a script": {func(t *testing.T, s *servers.RedisNode) {
			mustDo(t, s, "CONFIG", "SET", "busy-reply-threshold", "1")
			ended := make(chan struct{})
			go func() { // ends with the script, which is killed
				defer close(ended)
				_, _ = s.Do(context.Background(), "EVAL", "while true do end", "0")
			}()
			t.Cleanup(func() {
				_, _ = s.Do(context.Background(), "SCRIPT", "KILL")
				<-ended
			})
			soon(t.Context(), func() bool {
				_, err := s.Do(t.Context(), "GET", "x")
				return err != nil && strings.Contains(err.Error(), "BUSY")
			})
		}, "BUSY"},
	} {
		t.Run(name, func(t *testing.T) {
			s := servers.RedisServer(t, nil)
			d := open(t, soloOption(s.Addr()), nil)
			row.spoil(t, s)
			ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
			defer cancel()
			_, err := d.Acquire(ctx, lockRequest("id", "x"))
			_, several := d.AcquireAll(ctx, []*driver.Request{lockRequest("a", "a"), lockRequest("b", "b")})
			if !driver.IsNotSent(err) || !errors.Is(err, context.DeadlineExceeded) ||
				!strings.Contains(err.Error(), "last answer: "+row.says) {
				t.Errorf("got %v", err)
			}
			if !errors.Is(several, context.DeadlineExceeded) {
				t.Errorf("several, with no time at all: %v", several)
			}
			_ = d.Close()
		})
	}
}

func TestRelease_OfAHold_WhoseUserHasLostItsRights_IsRefused(t *testing.T) {
	s := servers.RedisServer(t, &servers.RedisOptions{Users: []string{"nobody off"}})
	d, err := asUser(t, soloOption(s.Addr()), nil, []*servers.RedisNode{s}, userRights(t, "locking"))()
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	r := lockRequest("id", "x")
	if _, err := d.Acquire(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	mustDo(t, s, "ACL", "SETUSER", "bob", "-evalsha", "-eval")
	release := &driver.Release{Key: r.Key, ID: r.ID}
	wantRefusal(t, "renew", lengthen(t.Context(), d, r, time.Minute), "NOPERM", "rights", false)
	wantRefusal(t, "release", d.Release(t.Context(), release), "NOPERM", "rights", false)
	mustDo(t, s, "ACL", "SETUSER", "bob", "+evalsha", "+eval")
	if err := d.Release(t.Context(), release); err != nil {
		t.Errorf("with the rights again: %v", err)
	}
}

// What others store under a lock's key is told by every call, shown to nobody, and left as it is.
func TestAForeignKey_IsListedWithoutItsValue_AndNotTouched(t *testing.T) {
	s := servers.RedisServer(t, nil)
	d := open(t, soloOption(s.Addr()), nil)
	foreign := map[string][]string{
		"redsync":     {"SET", "KEY", "c2VjcmV0IHNlY3JldA==", "PX", "900000"},
		"a one":       {"SET", "KEY", "1"},
		"a one more":  {"SET", "KEY", "1 secret"},
		"a number":    {"SET", "KEY", "123456789"},
		"a JSON text": {"SET", "KEY", `{"secret":1}`},
		"a list":      {"LPUSH", "KEY", "secret"},
		"a hash":      {"HSET", "KEY", "secret", "secret"},
		"a set":       {"SADD", "KEY", "secret"},
	}
	before := map[string]string{}
	for name, command := range foreign {
		key := "interlock:mutex:" + name
		mustDo(t, s, slices.Concat([]string{command[0], key}, command[2:])...)
		before[name] = dump(t, s, key)
	}
	const held = 5
	for i := range held {
		if _, err := d.Acquire(t.Context(), lockRequest(fmt.Sprint("held", i), fmt.Sprint("held", i))); err != nil {
			t.Fatal(err)
		}
	}
	readable, marked := 0, 0
	for info, err := range d.Locks(t.Context(), "") {
		switch {
		case err != nil:
			t.Fatalf("the list ends: %v", err)
		case info.Unreadable == "":
			readable += len(info.Holders)
		case foreign[info.Name] == nil || info.Holders != nil || info.Unreadable != errForeign.Error():
			t.Errorf("listed as %+v", info)
		default:
			marked++
		}
	}
	if readable != held || marked != len(foreign) {
		t.Errorf("%d locks and %d foreign keys are listed, want %d and %d", readable, marked, held, len(foreign))
	}
	for name := range foreign {
		key := driver.Key{Kind: driver.KindMutex, Name: name}
		_, _, _, looked := d.LookTokens(t.Context(), key)
		_, look := d.Look(t.Context(), key)
		_, acquired := d.Acquire(t.Context(), lockRequest("mine", name))
		for what, err := range map[string]error{
			"Acquire": acquired, "Look": look, "LookTokens": looked, "Break": d.Break(t.Context(), key, 1),
			"Release": d.Release(t.Context(), &driver.Release{Key: key, ID: "mine"}),
		} {
			if strings.Contains(fmt.Sprint(err), "c2Vj") || strings.Contains(fmt.Sprint(err), "secret") ||
				strings.Contains(fmt.Sprint(err), "later version") {
				t.Errorf("%s of %s: %v", what, name, err)
			}
			if refused := driver.Refusal(err); refused == nil ||
				!strings.Contains(err.Error(),
					`the key "interlock:mutex:`+name+`" holds a value that interlock did not write`) {
				t.Errorf("%s of %s: %v, want the key and what to do", what, name, err)
			}
		}
		if after := dump(t, s, "interlock:mutex:"+name); after != before[name] {
			t.Errorf("%s was changed from %q to %q", name, before[name], after)
		}
	}
}

func TestJudgeError_OfBothGenerationsOfServers(t *testing.T) {
	for text, want := range map[string]errorVerdict{
		"OOM command not allowed when used memory > 'maxmemory'. script: 5f, on @user_script:12.": {
			class: denied, hint: "the server is full",
		},
		"ERR Error running script (call to f_5f): @user_script:12: @user_script: 12: " +
			"-OOM command not allowed when used memory > 'maxmemory'.": {
			class: denied, hint: "the server is full",
		},
		"NOPERM this user has no permissions to run the 'evalsha' command": {class: denied, hint: "see the package"},
		"ERR The user executing the script can't run this command or subcommand script: 5f, on @user_script:12.": {
			class: denied, hint: "see the package", part: true,
		},
		"WRONGTYPE Operation against a key holding the wrong kind of value script: 5f, on @user_script:12.": {
			class: denied, hint: foreignHint,
		},
		"ERR user_script:38: attempt to perform arithmetic on local 'at' (a nil value) " +
			"script: 5f, on @user_script:38.": {
			class: denied, hint: foreignHint,
		},
		"ERR user_script:38: attempt to index a nil value script: 5f, on @user_script:38.": {
			class: denied, hint: foreignHint, part: true,
		},
		"LOADING Redis is loading the dataset in memory":                                {class: notSent},
		"NOREPLICAS Not enough good replicas to write. script: 5f, on @user_script:12.": {class: notSent},
		"max number of clients reached":                                                 {class: notSent},
		"ERR unknown command 'evalsha', with args beginning with: ": {
			class: denied, hint: "the server, or a proxy",
		},
		"ERR ACL failure in script: User bob has no permissions to run the 'set' command " +
			"script: 5f, on @user_script:12.": {class: denied, hint: "see the package", part: true},
		"ERR Unknown Redis command called from script script: 5f, on @user_script:12.": {
			class: denied, hint: "the server, or a proxy", part: true,
		},
		"ERR Unknown command called from script script: 5f, on @user_script:12.": {
			class: denied, hint: "the server, or a proxy", part: true,
		},
		"ERR Error running script (call to f_5f): @user_script:12: @user_script: 12: " +
			"Unknown Redis command called from Lua script": {class: denied, hint: "the server, or a proxy", part: true},
		"ERR max number of clients reached": {class: notSent},
		"ERR something new":                 {class: mayHaveRun},
		"EOF":                               {class: mayHaveRun},
	} {
		got := judgeError(errors.New(text), false)
		if got.class != want.class || !strings.HasPrefix(got.hint, want.hint) || got.part != want.part {
			t.Errorf("%s: %+v, want %+v", text, got, want)
		}
		if short := plainly(errors.New(text)).Error(); strings.Contains(short, "5f") ||
			strings.Contains(short, "Error running") {
			t.Errorf("%s: told as %q", text, short)
		}
	}
	if o := judgeError(&RefusedError{Err: conn.ErrReplica}, true); o.class != notSent {
		t.Errorf("a replica under Sentinel: %+v", o)
	}
	if o := judgeError(&RefusedError{Err: errors.New("READONLY You can't write against a read only replica")},
		false); o.class != denied {
		t.Errorf("a replica: %+v", o)
	}
	if o := judgeError(&RefusedError{Err: context.Canceled}, false); o.class != notSent {
		t.Errorf("never sent: %+v", o)
	}
}

// dump is what the server keeps under a key, as it stores it.
func dump(t *testing.T, s *servers.RedisNode, key string) string {
	t.Helper()
	value, err := s.Do(t.Context(), "DUMP", key)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(value)
}
