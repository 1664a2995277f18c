package redislock

import (
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/servers"
)

// What other libraries write is told from other keys, ours among them.
func TestDiagnose_OfLocksOfOtherLibraries_NamesThem(t *testing.T) {
	s := servers.RedisServer(t, nil)
	d := open(t, soloOption(s.Addr()), nil)
	defer func() { _ = d.Close() }()
	if _, err := d.Acquire(t.Context(), &driver.Request{
		Key: driver.Key{Kind: driver.KindMutex, Name: "ours"}, ID: "a", Weight: 1, Tokens: 1, Lease: time.Minute,
	}); err != nil {
		t.Fatal(err)
	}
	wantFinding(t, byCheck(t, d.Diagnose(t.Context())), "strangers", driver.LevelOK, "none of 0 keys")
	nodes, err := d.conn.Nodes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, command := range []string{
		"SET a-redsync-lock AAAAAAAAAAAAAAAAAAAAAA== PX 60000",
		"SET a-bsm-lock AAAAAAAAAAAAAAAAAAAAAA PX 60000",
		"SET job-lock:prod:cleanup ADDED:2026-11-26T10:00:00Z@host PX 60000",
		"SET orders:7 01234567-89ab-cdef-0123-456789abcdef PX 60000",
		"HSET a-redisson-lock 01234567-89ab-cdef-0123-456789abcdef:41 1",
		"PEXPIRE a-redisson-lock 60000",
		"SET a-session AAAAAAAAAAAAAAAAAAAAAA==", // which does not end by itself
		"SET a-text hello PX 60000",
	} {
		if _, err := nodes[0].Do(t.Context(), strings.Fields(command)...); err != nil {
			t.Fatal(command, err)
		}
	}
	var libraries []string
	for _, f := range lookForStrangers(t.Context(), nodes[0], d.opts.Prefix).found {
		libraries = append(libraries, f.library+" "+f.key)
	}
	want := "Redisson a-redisson-lock, ShedLock job-lock:prod:cleanup, Spring Integration orders:7, " +
		"bsm/redislock a-bsm-lock, redsync a-redsync-lock"
	if got := strings.Join(libraries, ", "); got != want {
		t.Errorf("found %s\nwant  %s", got, want)
	}
	wantFinding(t, byCheck(t, d.Diagnose(t.Context())), "strangers", driver.LevelWarn, "5 of 7 keys")
}
