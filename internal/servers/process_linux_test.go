package servers

import (
	"strings"
	"testing"
)

func TestStop_ReturnsWhenAllThreadsStandStill(t *testing.T) {
	n := RedisServer(t, nil)
	pid := n.current().cmd.Process.Pid
	if stands(pid) {
		t.Fatal("a server that serves is said to stand still")
	}
	for range 20 {
		n.Stop()
		if !stands(pid) {
			t.Error("a server that was stopped runs on")
		}
		n.Cont()
	}
	if err := pingRedis(bounded(t), n.Addr()); err != nil {
		t.Errorf("after all: %v", err)
	}
}

// What a failure says of a server that cannot be reached. What one that serves does just then, wait or run, is for the system to say.
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
	says("was stopped")
	n.Cont()
	n.Kill()
	says("has ended (signal: killed)")
}
