package target

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/interlock-go/interlock/enginekit"
	"github.com/interlock-go/interlock/internal/servers"
)

// Of Redlock's five clocks one is wrong, or most are, while the fault lasts; and all are right after it.
func TestRedlock_ClocksThatJump(t *testing.T) {
	g, err := Find("redlock")
	if err != nil {
		t.Fatal(err)
	}
	i := g.Start(t, []Fault{Clock, Clocks})
	for fault, want := range map[Fault]int{Clock: 1, Clocks: 3} {
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- i.Injections[fault](ctx, rand.New(rand.NewPCG(1, 1)), time.Minute) }()
		for end := time.Now().Add(20 * time.Second); wrong(t, i.Addrs) != want; enginekit.Pause(ctx,
			10*time.Millisecond) {
			if time.Now().After(end) {
				t.Errorf("%s: %d clocks are wrong, want %d", fault, wrong(t, i.Addrs), want)
				break
			}
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if n := wrong(t, i.Addrs); n != 0 {
			t.Errorf("%s: %d clocks are wrong after it", fault, n)
		}
	}
}

// wrong counts the servers whose clocks are.
func wrong(t *testing.T, addrs []string) (n int) {
	t.Helper()
	for _, addr := range addrs {
		c, err := servers.DialRedis(t.Context(), addr, nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := c.Do(t.Context(), "TIME")
		_ = c.Close() // it was for one question
		parts, _ := answer.([]any)
		if err != nil || len(parts) != 2 {
			t.Fatalf("the time is %v, %v", answer, err)
		}
		seconds, err := strconv.ParseInt(fmt.Sprint(parts[0]), 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		if off := time.Since(time.Unix(seconds, 0)); off < -500*time.Millisecond || off > 1500*time.Millisecond {
			n++
		}
	}
	return n
}
