package workload_test

import (
	"bufio"
	"errors"
	"math"
	"net"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/bench/distance"
	"github.com/interlock-go/interlock/bench/engined"
	"github.com/interlock-go/interlock/bench/peer"
	"github.com/interlock-go/interlock/bench/workload"
	goredis "github.com/redis/go-redis/v9"
)

// onServer is a job of a kind that only servers know.
func onServer(t *testing.T, kind workload.Kind, name string) workload.Job {
	t.Helper()
	needsServer(t)
	j := brief(t, name, 2, 3)
	j.Kind, j.Redis, j.Hold = kind, server, 0
	j.Quiet, j.Limit = 200*time.Millisecond, 3*time.Second
	j.Locks, j.Lease, j.Renewals = 20, 300*time.Millisecond, 1
	if kind == workload.Keep || kind == workload.Turns {
		j.Processes = 1
	}
	return j
}

func run(t *testing.T, j workload.Job) workload.Result {
	t.Helper()
	r, err := workload.Run(t.Context(), peers(), j)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestHandoff_MeasuresBothWays_AndWhatTheWaiterSends(t *testing.T) {
	j := onServer(t, workload.Handoff, "blpop")
	j.Time = 200 * time.Millisecond
	h := run(t, j).Handoff
	for len(h.Latencies) < 4 && j.Time < 5*time.Second { // a busy machine needs longer
		j.Time *= 4
		h = run(t, j).Handoff
	}
	if len(h.Latencies) < 4 || h.Hung > 0 {
		t.Errorf("%d hand-offs, %d hung", len(h.Latencies), h.Hung)
	}
	for _, ns := range h.Latencies {
		if ns <= 0 || ns > float64(20*time.Second) {
			t.Errorf("a hand-off took %v ns", ns)
		}
	}
	if h.Quiet > 0 {
		t.Errorf("%v commands a second while one waits in BLPOP, which sends nothing", h.Quiet)
	}
	j = onServer(t, workload.Handoff, "set-nx")
	if h = run(t, j).Handoff; h.Quiet < 10 { // fewer than it is on a machine with nothing else to do
		t.Errorf("%v commands a second while one asks every millisecond", h.Quiet)
	}
}

func TestRecall_MeasuresEachLockOnce_RetainedOrHeld(t *testing.T) {
	for _, name := range []string{"interlock-redis-retain", "interlock-redis"} {
		j := onServer(t, workload.Recall, name)
		j.Time = 200 * time.Millisecond
		h := run(t, j).Handoff
		for len(h.Latencies) < 4 && j.Time < 5*time.Second { // a busy machine needs longer
			j.Time *= 4
			h = run(t, j).Handoff
		}
		if len(h.Latencies) < 4 {
			t.Errorf("%s: %d locks", name, len(h.Latencies))
		}
		for _, ns := range h.Latencies {
			if ns <= 0 || ns > float64(2*time.Second) {
				t.Errorf("%s: the other process waited %v ns", name, ns)
			}
		}
	}
}

// A grant that comes late may bring one token only, and is not retained then.
func TestKeep_OfRetainedLocks_FindsThemStillRetained(t *testing.T) {
	j := onServer(t, workload.Keep, "interlock-redis-retained")
	j.Locks, j.Lease = 500, 3*time.Second
	if k := run(t, j).Keep; k.Lost > j.Locks/10 || k.Missing > 0 || k.Commands <= 0 {
		t.Errorf("%+v", *k)
	}
}

func TestTurns_OfARetainedLock_AskNobody(t *testing.T) {
	j := onServer(t, workload.Turns, "")
	j.Peers = []string{"interlock-redis-retain"}
	if turn := run(t, j).Turns["interlock-redis-retain"]; turn.RoundTrips > 0.05 {
		t.Errorf("%v round trips for a lock that is retained, want none", turn.RoundTrips)
	}
}

func TestContend_CountsTheTimeOfScripts(t *testing.T) {
	for name, some := range map[string]bool{"interlock-redis": true, "blpop": false} {
		j := onServer(t, workload.Contend, name)
		r := run(t, j)
		for some && r.Scripts == 0 && j.Time < 5*time.Second { // on a busy machine all may be over before it is counted
			j.Time = 4 * max(j.Time, 50*time.Millisecond)
			r = run(t, j)
		}
		if r.Scripts > 0 != some {
			t.Errorf("%s: the server ran scripts for %v ns in each turn", name, r.Scripts)
		}
	}
}

func TestRun_RefusesWhatItsProcessesCannotShare(t *testing.T) {
	for kind, processes := range map[workload.Kind]int{workload.Handoff: 3, workload.Recall: 3, workload.Keep: 2} {
		j := onServer(t, kind, "blpop")
		j.Processes = processes
		if _, err := workload.Run(t.Context(), peers(), j); err == nil {
			t.Errorf("%s with %d processes: no error", kind, processes)
		}
	}
}

func TestHerd_ServesEverybody_WithTwoCommandsEach(t *testing.T) {
	j := onServer(t, workload.Herd, "blpop")
	h := run(t, j).Herd
	if h.Unserved > 0 || h.Total <= 0 {
		t.Errorf("%+v", *h)
	}
	// BLPOP and LPUSH of each of six, and the LPUSH that began it. A connection that was not made before would be two
	// more.
	if want := 13.0 / 6; h.Commands < want || h.Commands > want+2 {
		t.Errorf("%v commands a grant, want %v", h.Commands, want)
	}
}

func TestHerd_WhoHangs_IsCounted(t *testing.T) {
	j := onServer(t, workload.Herd, "deaf")
	j.Limit = 50 * time.Millisecond
	h := run(t, j).Herd
	if h.Unserved != 6 || h.Total != float64(j.Limit) {
		t.Errorf("%+v, want 6 unserved after the limit", *h)
	}
}

func TestContend_WhoHangs_IsCutOff(t *testing.T) {
	needsServer(t)
	j := brief(t, "deaf", 1, 2)
	j.Redis = server
	if r := run(t, j); r.Cut != 2 {
		t.Errorf("%d waits were cut off, want 2: of who never got the lock, and of who wanted it again", r.Cut)
	}
}

func TestKeep_SeesHoldsAndTheirLoss(t *testing.T) {
	for _, p := range peer.All() {
		keepsNone := []string{
			"set-nx", "set-nx-pool", "set-nx-fenced", "blpop", "blpop-fenced", "redsync-1ms", "bsm-10ms",
		}
		if !p.Redis || p.Retains || p.Shares != peer.Nobody || slices.Contains(keepsNone, p.Name) {
			// nothing renews the first five, the others keep as their like, and who retains has a test of its own
			continue
		}
		j := onServer(t, workload.Keep, p.Name)
		k := run(t, j).Keep
		for k.Lost+k.Missing > 0 && j.Lease < 10*time.Second { // a busy machine may not renew a short lease in time
			j.Lease *= 4
			k = run(t, j).Keep
		}
		// Of so few holds the bytes may be fewer than what the stacks of goroutines that rest gave back meanwhile.
		if k.Lost > 0 || k.Missing > 0 || k.Commands <= 0 || k.Bytes == 0 || k.CPU <= 0 {
			t.Errorf("%s: %+v", p.Name, *k)
		}
	}
	j := onServer(t, workload.Keep, "losing")
	if k := run(t, j).Keep; k.Lost != j.Locks {
		t.Errorf("%d lost, want all %d", k.Lost, j.Locks)
	}
}

func TestTurns_MeasuresSeveralPeersAtOnce(t *testing.T) {
	for _, apart := range []bool{false, true} {
		j := onServer(t, workload.Turns, "")
		j.Peers, j.Apart = []string{"set-nx", "redsync", "rueidislock"}, apart
		r, err := workload.Run(t.Context(), peers(), j)
		if err != nil && apart {
			t.Logf("not on this machine: %v", err)
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range j.Peers {
			if ns := r.Turns[name].PerOp; !(ns > 0) || math.IsInf(ns, 0) {
				t.Errorf("%s: %v ns", name, ns)
			}
		}
	}
}

func TestTurns_SeeTimeOnProcessors_OfClientAndServer(t *testing.T) {
	j := onServer(t, workload.Turns, "")
	j.Peers = []string{"set-nx", "redsync"}
	for name, turn := range run(t, j).Turns {
		if turn.CPU <= 0 || runtime.GOOS == "linux" && turn.ServerCPU <= 0 {
			t.Errorf("%s: %+v", name, turn)
		}
	}
}

func TestTurns_CountRoundTrips(t *testing.T) {
	j := onServer(t, workload.Turns, "")
	j.Peers = []string{"set-nx", "interlock-redis"}
	for name, turn := range run(t, j).Turns {
		if turn.RoundTrips != 2 { // one to take it, one to give it back
			t.Errorf("%s needs %v round trips for a lock with its release, want 2", name, turn.RoundTrips)
		}
	}
}

func TestFar_EveryRequestTakesTheWay_AndTheRoundTripIsMeasured(t *testing.T) {
	needsServer(t)
	const far = 5 * time.Millisecond
	way, err := distance.Start(t.Context(), server, far)
	if err != nil {
		t.Fatal(err)
	}
	defer way.Close()
	j := onServer(t, workload.Turns, "")
	j.Peers, j.Far = []string{"set-nx", "interlock-redis"}, way.Addr
	r := run(t, j)
	for name, turn := range r.Turns {
		if turn.PerOp < 2*float64(far) || r.RoundTrip < float64(far) {
			t.Errorf("%s takes %v ns although it asks twice through %v; a round trip is %v ns",
				name, turn.PerOp, far, r.RoundTrip)
		}
	}
	j = onServer(t, workload.Handoff, "blpop")
	j.Far, j.Arrives, j.Time = way.Addr, far, 300*time.Millisecond
	r = run(t, j)
	if r.RoundTrip < float64(far) || len(r.Handoff.Latencies) == 0 {
		t.Fatalf("a round trip of %v ns, %d hand-offs", r.RoundTrip, len(r.Handoff.Latencies))
	}
	for _, ns := range r.Handoff.Latencies {
		if ns < float64(far) {
			t.Errorf("a hand-off took %v ns, half of %v out and half of it back", ns, far)
		}
	}
}

func TestHerd_OfWhomSeveralShareAClient_ServesEverybody(t *testing.T) {
	for _, clients := range []int{0, 2, 9} { // 0 is one
		j := onServer(t, workload.Herd, "interlock-redis")
		j.Goroutines, j.Shared, j.Clients = 5, true, clients
		if h := run(t, j).Herd; h.Unserved > 0 || h.Total <= 0 {
			t.Errorf("%d clients: %+v", clients, *h)
		}
	}
}

func TestDistinct_EverybodyHasALockOfHisOwn(t *testing.T) {
	needsServer(t)
	j := brief(t, "set-nx", 1, 4)
	j.Redis, j.Distinct = server, true
	j.Hold = 0
	if r := run(t, j); len(r.Shares) != 4 || r.Rate <= 0 || r.Commands <= 0 {
		t.Errorf("%+v", r)
	}
}

// TestSends_NamesWhatEachPeerSends compares the count, which has to know what clients send, with what MONITOR shows,
// which tells clients and scripts apart.
func TestSends_NamesWhatEachPeerSends(t *testing.T) {
	needsServer(t)
	for _, spec := range peer.All() {
		if !spec.Redis || spec.Retains { // who retains sends little, and at times of its own
			continue
		}
		t.Run(spec.Name, func(t *testing.T) {
			const pairs = 20
			shown, counted := watch(t, &spec, pairs)
			if shown != counted || counted < pairs {
				t.Errorf("the count is %d, MONITOR shows %d from clients", counted, shown)
			}
		})
	}
}

// watch lets a peer lock some times, and returns how many commands of clients MONITOR shows and how many the meter
// counts.
func watch(t *testing.T, spec *peer.Spec, pairs int) (shown, counted int64) {
	t.Helper()
	p, err := spec.Open(t.Context(), peer.Place{Redis: server})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	w, err := p.Worker(peer.LockName)
	if err != nil {
		t.Fatal(err)
	}
	lock := func(n int) {
		for range n {
			if err := errors.Join(w.Lock(t.Context()), w.Unlock(t.Context())); err != nil {
				t.Fatal(err)
			}
		}
	}
	lock(pairs) // connections are made: MONITOR does not show everything that this takes
	m := engined.NewMeter(server, spec.Sends)
	defer m.Close()
	lines := monitor(t)
	before := count(t, m)
	lock(pairs)
	counted = count(t, m).Sub(before).Commands
	const end = "that was all"
	c := goredis.NewClient(&goredis.Options{Addr: server, Protocol: 2, DisableIdentity: true})
	defer c.Close()
	if err := c.Echo(t.Context(), end).Err(); err != nil {
		t.Fatal(err)
	}
	for lines.Scan() {
		switch line := lines.Text(); {
		case strings.Contains(line, end):
			return shown, counted
		case !ofMeter(line) && !strings.Contains(line, " lua]"):
			shown++
		}
	}
	t.Fatalf("MONITOR ended: %v", lines.Err())
	return 0, 0
}

// ofMeter reports whether what MONITOR shows is the meter's, or a connection's beginning, or a ping.
func ofMeter(line string) bool {
	line = strings.ToLower(line)
	for _, name := range []string{
		`"info"`, `"command"`, `"hello"`, `"ping"`, `"client" "setinfo"`, `"client" "maint_notifications"`,
	} {
		if strings.Contains(line, name) {
			return true
		}
	}
	return false
}

func count(t *testing.T, m *engined.Meter) engined.Count {
	t.Helper()
	c, err := m.Count(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// monitor returns what MONITOR shows, from now until the test ends.
func monitor(t *testing.T) *bufio.Scanner {
	t.Helper()
	c, err := new(net.Dialer).DialContext(t.Context(), "tcp", server)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	_ = c.SetReadDeadline(time.Now().Add(10 * time.Second))
	if _, err := c.Write([]byte("MONITOR\r\n")); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(c)
	if !lines.Scan() || lines.Text() != "+OK" {
		t.Fatalf("MONITOR is answered %q, %v", lines.Text(), lines.Err())
	}
	return lines
}
