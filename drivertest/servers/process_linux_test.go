package servers

import "testing"

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
