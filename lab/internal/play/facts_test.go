package play

import (
	"regexp"
	"testing"
	"time"

	"github.com/interlock-go/interlock/lab/exhibit/d04getdel"
	"github.com/interlock-go/interlock/lab/internal/story"
)

// What the picture shows of an exhibit: where its clients are in the code, what they say to whom, and the lease.
func TestSteps_OfAnExhibit_TellWhereEachClientIs(t *testing.T) {
	p := New(t.Context(), t, "T", story.Same(""), story.Same(""))
	p.Act("x", "x")
	server := p.Redis()
	p.Watch("Redis", server.Value("k"))
	a := p.Actor("A")
	lock := &d04getdel.Lock{Conn: a.Dial(server.Addr(), ""), Key: "k"}
	got, err := lock.TryLock(p.Context(), "A", 10)
	a.Got(true, got, err)
	pause := a.Until("DEL", func() { err = lock.Unlock(p.Context(), "A") })
	p.Say("x", "x")
	pause.Resume()
	server.Ask("SET", "k", "for ever")
	p.Say("x", "x")

	steps := p.Story().Acts[0].Steps
	set, get, still, last := steps[0], steps[2], steps[3], steps[len(steps)-1]
	if m := set.Message; m == nil || *m != (story.Message{To: "Redis", Way: story.Both}) {
		t.Errorf("the message of SET is %+v", m)
	}
	if left := set.Left[0]; left < 1 || left > 10_000 {
		t.Errorf("after SET EX 10 the lease has %d ms left", left)
	}
	if last.Left[0] != story.Forever {
		t.Errorf("a key without an end has %d ms left", last.Left[0])
	}
	line := regexp.MustCompile(`^d04getdel/lock\.go:\d+$`)
	where := []string{set.Code["A"][0], get.Code["A"][0], still.Code["A"][0]}
	if !line.MatchString(where[0]) || where[0] == where[1] || where[1] == where[2] {
		t.Errorf("SET, GET, and A that stands still before DEL, are at %q", where)
	}
	if still.States["A"] != story.Still {
		t.Errorf("A stands still, and its state is %q", still.States["A"])
	}
}

func TestSteps_OfAProcess_TellItsRequestItsReplyAndItsRenewals(t *testing.T) {
	p := New(t.Context(), t, "T", story.Same(""), story.Same(""))
	const lease = 4 * time.Second
	p.Sound("x", "x")
	p.Answers(2, 3)
	server := p.Redis()
	p.WatchLock("Redis", server.URL(), "k")
	a, b := p.Process("A", server.URL(), "k", lease), p.Process("B", server.URL(), "k", lease)
	a.Lock()
	b.BeginLock()
	a.Renewed(1)
	a.Unlock()
	b.Granted()
	b.Unlock()

	act := p.Story().Acts[0]
	ways := map[story.Way]int{}
	for _, s := range act.Steps {
		if s.Message != nil && s.Message.To == "Redis" {
			ways[s.Message.Way]++
		}
	}
	if ways[story.Both] != 3 || ways[story.Request] != 1 || ways[story.Reply] != 1 {
		t.Errorf("the messages are %v", ways)
	}
	if s := act.Steps[1]; s.States["B"] != story.Waits || s.Left[0] < 1 || s.Left[0] > lease.Milliseconds() {
		t.Errorf("B is %q, and A's lease has %d ms left", s.States["B"], s.Left[0])
	}
	if len(act.Beats) == 0 || act.Beats[0].Who != "A" || act.Beats[0].Left != lease.Milliseconds() {
		t.Errorf("the renewals are %+v", act.Beats)
	}
	if len(act.Answers) != 2 {
		t.Errorf("it stands beside %v", act.Answers)
	}
}
