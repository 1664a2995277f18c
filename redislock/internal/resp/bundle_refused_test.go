package resp

import (
	"errors"
	"testing"

	"github.com/interlock-go/interlock/redislock/conn"
)

func TestBundle_ThatTheServerDoesNotKnow_IsSentOneByOne(t *testing.T) {
	b := startBundled(t, nil)
	calls := []*conn.Call{wants("x", "a"), wants("y", "b")}
	b.says(b.together(calls...), "G ", "G ")
	if _, err := b.Do(t.Context(), "SCRIPT", "FLUSH"); err != nil {
		t.Fatal(err)
	}
	b.says(b.together(calls...), "ALONE", "ALONE")
	b.says(b.together(calls...), "G ", "G ") // taught again
}

func TestBundle_WithKeysOfWhichSomeAreForbidden_IsSentOneByOne(t *testing.T) {
	b := startBundled(t, nil)
	if _, err := b.Do(t.Context(), "ACL", "SETUSER", "default", "resetkeys", "~x"); err != nil {
		t.Fatal(err)
	}
	b.says(b.together(wants("x", "a"), wants("y", "b")), "ALONE", "ALONE")
	if !b.gathered.on {
		t.Error("the next ones are not bundled, although they may have other keys")
	}
	if _, err := b.Do(t.Context(), "ACL", "SETUSER", "default", "allkeys", "-eval"); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Do(t.Context(), "SCRIPT", "FLUSH"); err != nil {
		t.Fatal(err)
	}
	b.gathered.taught = false
	b.says(b.together(wants("v", "a"), wants("w", "b")), "ALONE", "ALONE")
	if b.gathered.on {
		t.Error("the next ones are bundled, although the server cannot be told how to run them")
	}
}

// TestBundle_OfAServerThatIsSeveral_IsTheLast: there are proxies that shard, and say that they are one server.
func TestBundle_OfAServerThatIsSeveral_IsTheLast(t *testing.T) {
	b := startBundled(t, nil)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.gathered.taught = true
	both := []*request{b.bundle('t', wants("x", "a")), b.bundle('t', wants("y", "b"))}
	b.seal()
	b.out = b.out[:0]
	ready, err := b.unbundle(2, []byte("-CROSSSLOT Keys in request don't hash to the same slot\r\n"), nil)
	if err != nil || len(ready) != 2 {
		t.Fatalf("%d are ready (%v)", len(ready), err)
	}
	for _, p := range both {
		if !errors.Is(p.err, ErrAlone) {
			t.Error(p.err)
		}
	}
	if kind := b.gathered.kindOf(wants("x", "a"), ByName); kind != 0 {
		t.Errorf("the next one is in a bundle too: %c", kind)
	}
}
