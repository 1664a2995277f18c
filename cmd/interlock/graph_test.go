package main

import (
	"bytes"
	"testing"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
)

func held(name string, kind driver.Kind, holders ...string) interlock.LockInfo {
	l := interlock.LockInfo{Kind: kind, Name: name}
	for _, h := range holders {
		l.Holders = append(l.Holders, driver.Holder{Owner: h, Client: "on-" + h, Shared: kind == driver.KindRWMutex})
	}
	return l
}

func wanted(l interlock.LockInfo, shared bool, waiters ...string) interlock.LockInfo {
	for _, w := range waiters {
		l.Waiters = append(l.Waiters, driver.Waiter{Owner: w, Client: "on-" + w, Shared: shared})
	}
	return l
}

func TestGraph_MarksCyclesAndNothingElse(t *testing.T) {
	t.Parallel()
	locks := []interlock.LockInfo{
		wanted(held("a", driver.KindMutex, "A"), false, "C", "D"), // D waits for a cycle and is not in it
		wanted(held("b", driver.KindMutex, "B"), false, "A"),
		wanted(held("c", driver.KindRWMutex, "C", "E"), false, "B"), // for two readers, of which one is in the cycle
		wanted(held("e", driver.KindRWMutex, "F"), true, "E"),       // readers do not wait for each other
		wanted(held("f", driver.KindRWMutex, "F"), false, "F"),      // an upgrade
		held("g", driver.KindMutex, "G"),
	}
	for format, want := range map[format]string{
		text: `WAITER     NAME  KIND   HELD BY    CYCLE
C at on-C  a     mutex  A at on-A  yes
D at on-D  a     mutex  A at on-A  -
A at on-A  b     mutex  B at on-B  yes
B at on-B  c     rw     C at on-C  yes
B at on-B  c     rw     E at on-E  -
cycle: C -> A -> B -> C
`,
		asJSON: `[["C","A","B"]]`,
	} {
		var stdout bytes.Buffer
		a := &app{stdout: &stdout, output: format}
		g := waitsFor(locks)
		err := a.printGraph(g)
		if format == asJSON {
			stdout.Reset()
			err = a.printJSON(g.Cycles)
			want += "\n"
		}
		if err != nil || stdout.String() != want {
			t.Errorf("%v\n got %s\nwant %s", err, stdout.String(), want)
		}
	}
}

func TestGraph_KnowsNoCycleOfProcesses(t *testing.T) {
	t.Parallel()
	a, b := held("a", driver.KindMutex, ""), held("b", driver.KindMutex, "")
	a.Holders[0].Client, b.Holders[0].Client = "p", "q"
	a.Waiters = []driver.Waiter{{Client: "q"}}
	b.Waiters = []driver.Waiter{{Client: "p"}}
	g := waitsFor([]interlock.LockInfo{a, b})
	if len(g.Edges) != 2 || len(g.Cycles) != 0 || g.Edges[0].Cycle {
		t.Errorf("%+v, cycles %v", g.Edges, g.Cycles)
	}
}

// A lock that rests opens by itself: whoever waits for it waits for no owner.
func TestGraph_KnowsNoCycleThroughAHoldThatIsOver(t *testing.T) {
	t.Parallel()
	over := wanted(held("a", driver.KindMutex, "A"), false, "B", "A") // A was done with it, and wants it again
	over.Holders[0].Cooldown = true
	g := waitsFor([]interlock.LockInfo{over, wanted(held("b", driver.KindMutex, "B"), false, "A")})
	var stdout bytes.Buffer
	a := &app{stdout: &stdout, output: text}
	want := `WAITER     NAME  KIND   HELD BY               CYCLE
B at on-B  a     mutex  A at on-A (cooldown)  -
A at on-A  a     mutex  A at on-A (cooldown)  -
A at on-A  b     mutex  B at on-B             -
`
	if err := a.printGraph(g); err != nil || stdout.String() != want {
		t.Errorf("%v\n got %s\nwant %s", err, stdout.String(), want)
	}
	if c := g.Cycles; len(c) > 0 {
		t.Errorf("cycles %v", c)
	}
}
