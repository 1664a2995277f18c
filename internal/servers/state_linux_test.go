package servers

import (
	"strings"
	"testing"
)

// What a failure says of a server that cannot be reached. What one that serves does just then, wait or run,
// is for the system to say.
func TestState_TellsOneThatServesFromOneThatHangsAndOneThatIsDead(t *testing.T) {
	n := RedisServer(t, nil)
	says := func(word string) {
		t.Helper()
		if state := n.state(); !strings.Contains(state, word) {
			t.Errorf("its state is %q, without %q", state, word)
		}
	}
	says(") in ")
	n.Stop()
	says("was suspended")
	n.Cont()
	n.Kill()
	says("has ended (signal: killed)")
}
