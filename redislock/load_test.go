package redislock

import (
	"strconv"
	"testing"

	"github.com/interlock-go/interlock/internal/servers"
	"github.com/interlock-go/interlock/redislock/conn"
)

// A server may stand still in the middle of a script, so what is read of clocks there is not of one instant. The lease
// of a thin lock must not seem to end before the key does.
func TestLoad_OfAThinLock_DoesNotEndItsLeaseEarlyWhenTheServerPausesInTheScript(t *testing.T) {
	s := servers.RedisServer(t, nil)
	d := open(t, soloOption(s.Addr()), nil)
	r := lockRequest("mine", "x")
	if _, err := d.Acquire(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	source := newScript("clock begin text lock rules").Source()
	pause := `local until_ = redis.call('PEXPIRETIME', KEYS[1]) for i = 1, 2e7 do end load() ` +
		`return tostring(holds[1][UNTIL] - until_)`
	key, slot := d.names.lock(r.Key)
	call := &Call{
		Script: conn.NewScript(source + "\n" + pause), Slot: slot,
		Keys: []string{key, d.names.floor(slot), d.names.tomb(slot, "x")},
	}
	for try := 1; ; try++ {
		answer := d.conn.Call(t.Context(), call)
		late, err := strconv.Atoi(answer.Text)
		if answer.Err != nil || err != nil || late < 0 || late > 10 && try == 5 {
			t.Fatalf("UNTIL is %q ms after the end of the key: %v", answer.Text, answer.Err)
		}
		if late <= 10 { // else the server has paused by itself, while it read the clock
			return
		}
	}
}
