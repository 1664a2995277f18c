package redislock

import (
	"errors"
	"testing"
)

func TestBundle_ThatTheServerDoesNotKnow_IsSentOneByOne(t *testing.T) {
	b := startBundled(t, &wireOptions{}, nil)
	calls := []*Call{wants("x", "1", "a"), wants("y", "2", "b")}
	b.says(b.together(calls...), "G ", "G ")
	if _, err := b.do(t.Context(), "SCRIPT", "FLUSH"); err != nil {
		t.Fatal(err)
	}
	b.says(b.together(calls...), "ALONE", "ALONE")
	b.says(b.together(calls...), "G ", "G ") // taught again
}

func TestBundle_WithKeysOfWhichSomeAreForbidden_IsSentOneByOne(t *testing.T) {
	b := startBundled(t, &wireOptions{}, nil)
	if _, err := b.do(t.Context(), "ACL", "SETUSER", "default", "resetkeys", "~interlock:x", "~interlock:floor:*", "~interlock:gone:*"); err != nil {
		t.Fatal(err)
	}
	b.says(b.together(wants("x", "1", "a"), wants("y", "2", "b")), "ALONE", "ALONE")
	var try rueidisTry
	if _, err := try.next(&rueidisNode{}, nil, 0, errAlone); err != nil || try.how() != alone {
		t.Errorf("it is sent %v then (%v)", try.how(), err)
	}
	if !b.gathered.on {
		t.Error("the next ones are not bundled, although they may have other keys")
	}
	if _, err := b.do(t.Context(), "ACL", "SETUSER", "default", "allkeys", "-eval"); err != nil {
		t.Fatal(err)
	}
	b.gathered.taught = false
	b.says(b.together(wants("v", "1", "a"), wants("w", "2", "b")), "ALONE", "ALONE")
	if b.gathered.on {
		t.Error("the next ones are bundled, although the server cannot be told how to run them")
	}
}

func TestBundle_NeedsTheRightsThatAreDocumented(t *testing.T) {
	b := startBundled(t, &wireOptions{}, nil)
	rights := append([]string{"ACL", "SETUSER", "default", "reset", "on", "nopass"}, userRights(t, "locking")...)
	if _, err := b.do(t.Context(), rights...); err != nil {
		t.Fatal(err)
	}
	b.says(b.together(wants("x", "1", "a"), wants("y", "2", "b"), wants("y", "2", "c")), "G ", "G ", "Q ")
	b.says(b.together(returns("x", "1", "a"), returns("y", "2", "b")), "ok", "ok")
}

// TestBundle_OfAServerThatIsSeveral_IsTheLast: there are proxies that shard, and say that they are one server.
func TestBundle_OfAServerThatIsSeveral_IsTheLast(t *testing.T) {
	b := startBundled(t, &wireOptions{}, nil)
	b.mu.Lock()
	defer b.mu.Unlock()
	both := []*request{b.bundle('a', wants("x", "1", "a")), b.bundle('a', wants("y", "2", "b"))}
	b.seal()
	b.out = b.out[:0]
	ready, err := b.unbundle(2, []byte("-CROSSSLOT Keys in request don't hash to the same slot\r\n"), nil)
	if err != nil || len(ready) != 2 {
		t.Fatalf("%d are ready (%v)", len(ready), err)
	}
	for _, p := range both {
		if !errors.Is(p.err, errAlone) {
			t.Error(p.err)
		}
	}
	if kind := b.gathered.kindOf(wants("x", "1", "a"), byName); kind != 0 {
		t.Errorf("the next one is in a bundle too: %c", kind)
	}
}
