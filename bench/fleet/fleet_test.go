package fleet

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/internal/childproc"
	"github.com/interlock-go/interlock/internal/servers"
	"github.com/redis/go-redis/v9"
)

// start starts a member.
func start(t *testing.T, o order) *childproc.Child {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "FLEET_MEMBER=1")
	c, err := childproc.Open(cmd, childproc.JSON, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Kill)
	if err := c.Send(o); err != nil {
		t.Fatal(err)
	}
	return c
}

// perMember is how many turns a member takes that is not killed.
const perMember = 200

// Old and new programs take turns while some of each are killed and started again, as in a rolling deploy that goes
// wrong.
func TestMixedFleet_UnderKills_IsNeverInsideTogether(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	dice := rand.New(rand.NewPCG(seed, 0))
	addr := servers.Redis(t)
	list := redis.NewClient(&redis.Options{Addr: addr})
	defer func() { _ = list.Close() }()
	var fleet []*childproc.Child
	for library := range lockers {
		for n := range 2 {
			id := fmt.Sprint(library, "-", n)
			fleet = append(fleet, start(t, order{Library: library, Addr: addr, ID: id, Turns: perMember}))
		}
	}
	for library := range lockers {
		inside := start(t, order{Library: library, Addr: addr, ID: library + "-inside", Stops: true})
		var said news
		if err := inside.Receive(&said); err != nil || !said.Inside {
			t.Fatalf("%+v, %v", said, err)
		}
		inside.Kill() // so that its lock stays until its time has run out
		anywhere := start(t, order{Library: library, Addr: addr, ID: library + "-anywhere"})
		some := 1 + dice.IntN(20)
		wait(t, "some turns of who is killed", func() bool { return wrote(t, list, library+"-anywhere") > some })
		anywhere.Kill()
	}
	for _, member := range fleet {
		var last news
		if err := member.Receive(&last); err != nil || last.Err != "" || last.Wrote != perMember*writes {
			t.Errorf("a member ended with %+v, %v", last, err)
		}
	}
	judge(t, list)
	wait(t, "the other libraries' key to go", func() bool { return list.Exists(t.Context(), lockName).Val() == 0 })
}

// A program of ours that stood still for longer than its lease finds that it was overtaken, by whichever library, and
// writes nothing.
func TestMixedFleet_AfterAStop_WritesNothing(t *testing.T) {
	for other := range lockers {
		t.Run(other, func(t *testing.T) {
			t.Parallel() // most of it waits
			addr := servers.Redis(t)
			list := redis.NewClient(&redis.Options{Addr: addr})
			defer func() { _ = list.Close() }()
			stopped := start(t, order{Library: "interlock", Addr: addr, ID: "stopped", Turns: 1, Stops: true})
			var inside news
			if err := stopped.Receive(&inside); err != nil || !inside.Inside {
				t.Fatalf("%+v, %v", inside, err)
			}
			if err := stopped.Suspend(); err != nil {
				t.Fatal(err)
			}
			next := start(t, order{Library: other, Addr: addr, ID: "next", Turns: 1})
			var last news
			if err := next.Receive(&last); err != nil || last.Wrote != writes {
				t.Errorf("who came after the lease: %+v, %v", last, err)
			}
			if err := stopped.Resume(); err != nil {
				t.Fatal(err)
			}
			if err := stopped.Send(true); err != nil {
				t.Fatal(err)
			}
			if err := stopped.Receive(&last); err != nil || last.Wrote != 0 || last.Err == "" {
				t.Errorf("who was stopped: %+v, %v", last, err)
			}
			judge(t, list)
		})
	}
}

// wrote is how often a member has written.
func wrote(t *testing.T, list *redis.Client, id string) (n int) {
	t.Helper()
	all, err := list.LRange(t.Context(), written, 0, -1).Result()
	if err != nil {
		t.Fatal(err)
	}
	for _, turn := range all {
		if strings.HasPrefix(turn, id+" ") {
			n++
		}
	}
	return n
}

// judge fails if a turn wrote after another had begun to. A turn that was killed has written less.
func judge(t *testing.T, list *redis.Client) {
	t.Helper()
	all, err := list.LRange(t.Context(), written, 0, -1).Result()
	if err != nil || len(all) == 0 {
		t.Fatalf("%d writes, %v", len(all), err)
	}
	of := map[string]int{} // turns of each library
	seen := map[string]bool{}
	for i, turn := range all {
		if i > 0 && all[i-1] == turn {
			continue
		}
		if seen[turn] {
			t.Errorf("write %d: turn %q goes on after %q had begun", i, turn, all[i-1])
		}
		seen[turn] = true
		library, _, _ := strings.Cut(turn, "-")
		of[library]++
	}
	t.Logf("turns: %v", of)
}

// wait waits until is answers true.
func wait(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !is(); <-time.After(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited for %s for a minute", what)
		}
	}
}
