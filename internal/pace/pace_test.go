package pace

import (
	"testing"
	"time"

	"github.com/interlock-go/interlock/internal/servers"
)

func TestClock_GoesOnUnlessAServerStandsStill(t *testing.T) {
	s := servers.RedisServer(t, nil)
	c := Of(t, s)
	goesOn := func() {
		t.Helper()
		for begin, end := c.Now(), time.Now().Add(20*time.Second); c.Now() < begin+10*tick; <-time.After(tick) {
			if time.Now().After(end) {
				t.Fatalf("it stands at %v", c.Now())
			}
		}
	}
	goesOn()
	s.Stop()
	begin := c.Now()
	<-time.After(20 * tick)
	if took := c.Now() - begin; took > tick { // an answer may have been there
		t.Errorf("it has gone on by %v while the server stood still", took)
	}
	s.Cont()
	goesOn()
	if stood := c.Longest(); stood < 19*tick {
		t.Errorf("it says that it has never stood still for longer than %v", stood)
	}
	s.Kill()
	goesOn()
}

func TestClock_IsNoFasterThanTheTime(t *testing.T) {
	c := Process()
	begin := time.Now()
	first := c.Now()
	<-time.After(40 * tick)
	if went, took := c.Now()-first, time.Since(begin)+tick; went > took {
		t.Errorf("it went on by %v in %v", went, took)
	}
}
