package redislock

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/internal/servers"
	"github.com/interlock-go/interlock/redislock/conn"
)

// bundled runs plain requests in one run of the script, as package resp does, and returns what each is told.
func bundled(t *testing.T, server *servers.RedisNode, calls ...*Call) []string {
	t.Helper()
	var kinds, keys, args []string
	for _, c := range calls {
		kinds = append(kinds, string(bundle.Letter(c)))
		keys, args = append(keys, c.Keys...), append(args, c.Args...)
	}
	command := append([]string{"EVAL", bundleScript.Source(), fmt.Sprint(len(keys))}, keys...)
	answer, err := server.Do(t.Context(), append(append(command, strings.Join(kinds, "")), args...)...)
	list, isList := answer.([]any)
	if err != nil || !isList || len(list) != len(calls) {
		t.Fatalf("the bundle is answered %v, %v", answer, err)
	}
	got := make([]string, len(list))
	for i := range list {
		got[i] = fmt.Sprint(list[i])
	}
	return got
}

// bundleSays fails unless each answer begins as it should.
func bundleSays(t *testing.T, got []string, want ...string) {
	t.Helper()
	for i := range want {
		if !strings.HasPrefix(got[i], want[i]) {
			t.Errorf("request %d: got %q, want %q...", i, got[i], want[i])
		}
	}
}

// wants is a plain request for a lock in a slot.
func wants(name, slot, id string) *Call {
	return &Call{
		Script: acquireScript,
		Keys:   []string{"interlock:" + name, "interlock:floor:{" + slot + "}", "interlock:gone:{" + slot + "}:" + id},
		Args:   []string{id, "60000", "1", `p 2000 5000 60000 1 interlock:heard {"o":"","c":"","l":""}`},
	}
}

// returns is a plain release of what wants has got.
func returns(name, slot, id string) *Call {
	c := wants(name, slot, id)
	c.Script, c.Args = releaseScript, c.Args[:1]
	return c
}

func TestScript_ABundleOfPlainRequests_AnswersEachAndPushes(t *testing.T) {
	s := servers.RedisServer(t, nil)
	heard := newTeller()
	c := newPlainConn(dial(t, soloOption(s.Addr())))
	defer c.Close()
	if err := c.Start(t.Context(), "interlock:heard", heard); err != nil {
		t.Fatal(err)
	}
	bundleSays(t, bundled(t, s, wants("x", "1", "a"), wants("y", "2", "b"), wants("z", "3", "c")), "G ", "G ", "G ")
	got := bundled(t, s, wants("x", "1", "d"), returns("y", "2", "b"), wants("v", "4", "e"), returns("z", "3", "wrong"))
	bundleSays(t, got, "Q ", "ok", "G ", "lost taken")
	bundleSays(t, bundled(t, s, returns("x", "1", "a"), wants("w", "5", "f")), "ok", "G ")
	select {
	case <-heard.all: // the subscription began
	default:
	}
	select {
	case push := <-heard.all:
		if !strings.HasPrefix(push.message, "G d ") {
			t.Errorf("pushed: %+v", push)
		}
	case <-time.After(patience):
		t.Error("nothing was pushed")
	}
}

// It is about what one request finds that another one of its bundle has changed.
func TestScript_ABundleOfRequestsThatTouch_IsAsIfTheyWereAlone(t *testing.T) {
	s := servers.RedisServer(t, nil)
	got := bundled(t, s, wants("x", "1", "a"), wants("x", "1", "b"), wants("y", "1", "c"), returns("x", "1", "a"),
		wants("z", "1", "d"))
	bundleSays(t, got, "G ", "Q ", "G ", "ok", "G ")
	var now, first, second uint64
	if _, err := fmt.Sscanf(got[0], "G %d", &first); err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Sscanf(got[2], "G %d %d 1 c 60000", &now, &second); err != nil || second <= first {
		t.Errorf("the token of y is %d after %d of x (%v)", second, first, err)
	}
}

func TestScript_ABundleInWhichOneFails_RunsTheOthers(t *testing.T) {
	s := servers.RedisServer(t, nil)
	if _, err := s.Do(t.Context(), "RPUSH", "interlock:x", "not a lock"); err != nil {
		t.Fatal(err)
	}
	got := bundled(t, s, wants("w", "1", "a"), wants("x", "2", "b"), wants("y", "3", "c"))
	bundleSays(t, got, "G ", "WRONGTYPE ", "G ")
	if !conn.InScript(got[1]) {
		t.Errorf("the failure is taken for one before anything was run: %s", got[1])
	}
}

func TestScript_ABundleNeedsTheRightsThatAreDocumented(t *testing.T) {
	s := servers.RedisServer(t, nil)
	rights := append([]string{"ACL", "SETUSER", "default", "reset", "on", "nopass"}, userRights(t, "locking")...)
	if _, err := s.Do(t.Context(), rights...); err != nil {
		t.Fatal(err)
	}
	bundleSays(t, bundled(t, s, wants("x", "1", "a"), wants("y", "2", "b"), wants("y", "2", "c")), "G ", "G ", "Q ")
	bundleSays(t, bundled(t, s, returns("x", "1", "a"), returns("y", "2", "b")), "ok", "ok")
}
