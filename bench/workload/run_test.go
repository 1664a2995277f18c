package workload_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/bench/distance"
	"github.com/interlock-go/interlock/bench/engined"
	"github.com/interlock-go/interlock/bench/peer"
	"github.com/interlock-go/interlock/bench/stats"
	"github.com/interlock-go/interlock/bench/workload"
	"github.com/interlock-go/interlock/internal/childproc"
)

func TestMain(m *testing.M) {
	distance.ServeIfChild()
	workload.ServeIfChild(peers())
	if os.Getenv("GORACE") == "" {
		_ = os.Setenv("GORACE", "atexit_sleep_ms=0") // or each of very many processes takes a second to end under -race
	}
	os.Exit(withServer(m))
}

// server is where the tests' Redis listens, or "" if there is none on this machine.
var server string

func withServer(m *testing.M) int {
	s, err := engined.Start(context.Background(), engined.Redis)
	if errors.Is(err, engined.ErrMissing) && os.Getenv("INTERLOCK_REQUIRE") == "" {
		return m.Run()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	server = s.Addr
	code := m.Run()
	if err := s.Close(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

// needsServer skips a test of something on Redis where there is none.
func needsServer(t *testing.T) {
	t.Helper()
	if server == "" {
		t.Skip(engined.ErrMissing)
	}
}

// peers are the real ones and some that only tests have.
func peers() []peer.Spec {
	return append(peer.All(),
		peer.Spec{Name: "none", Open: func(context.Context, peer.Place) (peer.Peer, error) { return free{}, nil }},
		peer.Spec{Name: "deaf", Open: openDeaf},
		peer.Spec{Name: "leaving", Open: openLeaving},
		peer.Spec{Name: "losing", Open: func(context.Context, peer.Place) (peer.Peer, error) { return losing{}, nil }},
		peer.Spec{Name: "broken", Open: func(context.Context, peer.Place) (peer.Peer, error) { return nil, errBroken }},
		peer.Spec{
			Name: "refusing",
			Open: func(context.Context, peer.Place) (peer.Peer, error) { return free{err: errBroken}, nil },
		},
	)
}

var errBroken = errors.New("broken on purpose")

// free excludes nobody.
type free struct{ err error }

func (f free) Worker(string) (peer.Worker, error) { return f, nil }
func (free) Close() error                         { return nil }
func (f free) Lock(context.Context) error         { return f.err }
func (free) Unlock(ctx context.Context) error     { return ctx.Err() }

// deaf gives the lock to the first who asks, and nobody hears that it is free again.
type deaf struct{ taken string }

func openDeaf(_ context.Context, at peer.Place) (peer.Peer, error) {
	return deaf{filepath.Join(at.Dir, "taken")}, nil
}

func (deaf) Close() error                 { return nil }
func (deaf) Unlock(context.Context) error { return nil }

// Worker excludes nobody from other locks.
func (d deaf) Worker(name string) (peer.Worker, error) {
	if name != peer.LockName {
		return free{}, nil
	}
	return d, nil
}

func (d deaf) Lock(ctx context.Context) error {
	f, err := os.OpenFile(d.taken, os.O_CREATE|os.O_EXCL, 0o600)
	if err == nil {
		return f.Close()
	}
	<-ctx.Done()
	return ctx.Err()
}

// losing loses what it holds.
type losing struct{ free }

func (losing) Hold(context.Context, string) (peer.Hold, error) { return lost{}, nil }

type lost struct{}

func (lost) Release(context.Context) error { return peer.ErrLost }

// brief is a job that lasts for as long as it takes to see that it works.
func brief(t *testing.T, name string, processes, goroutines int) workload.Job {
	t.Helper()
	j := workload.Job{
		Kind: workload.Contend, Peer: name, Dir: t.TempDir(), Time: 20 * time.Millisecond, Warm: 2 * time.Millisecond,
		Redis: serverOf(name), Processes: processes, Goroutines: goroutines, Hold: 20 * time.Microsecond,
	}
	for _, p := range peers() {
		if p.Name == name && p.Shares != peer.Nobody {
			j.Sharing = p.Shares
		}
	}
	if j.Redis != "" { // connections are made
		j.Time, j.Warm = 100*time.Millisecond, 50*time.Millisecond
	}
	return j
}

// serverOf is the server for peers that need one: others must not count what it does.
func serverOf(name string) string {
	for _, p := range peers() {
		if p.Name == name && p.Redis {
			return server
		}
	}
	return ""
}

func TestRun_EveryPeerExcludes_AndIsMeasured(t *testing.T) {
	for _, p := range peer.All() {
		if p.Engine != "" { // the tests of the scenarios have their servers
			continue
		}
		t.Run(p.Name, func(t *testing.T) {
			if p.Redis {
				needsServer(t)
			}
			shapes := [][2]int{{1, 8}}
			if !p.Alone {
				shapes = append(shapes, [2]int{3, 1}, [2]int{2, 3})
			}
			for _, shape := range shapes {
				job := brief(t, p.Name, shape[0], shape[1])
				r, err := workload.Run(t.Context(), peers(), job)
				// On a machine that is busy with other things a short window may see nothing.
				for ; err == nil && r.Rate <= 0 && job.Time < 5*time.Second; r, err = workload.Run(t.Context(), peers(),
					job) {
					job.Time *= 4
				}
				if err != nil {
					t.Fatalf("%d processes with %d goroutines: %v", shape[0], shape[1], err)
				}
				want := shape[0] // a share is a process's, if there are several
				if want == 1 {
					want = shape[1]
				}
				if len(r.Shares) != want || r.Rate <= 0 || r.Wait.Count() == 0 {
					t.Errorf("%d shares (want %d), %v locks/s, %d waits", len(r.Shares), want, r.Rate, r.Wait.Count())
				}
			}
		})
	}
}

func TestRun_PeerThatDoesNotExclude_IsNoticed(t *testing.T) {
	for _, shape := range [][2]int{{1, 4}, {4, 1}} {
		_, err := workload.Run(t.Context(), peers(), brief(t, "none", shape[0], shape[1]))
		if !errors.Is(err, workload.ErrOverlap) {
			t.Errorf("%d processes with %d goroutines: error %v, want ErrOverlap", shape[0], shape[1], err)
		}
	}
}

func TestRun_SaysWhyAWorkerFailed_AndLeavesNothingBehind(t *testing.T) {
	for _, name := range []string{"broken", "refusing"} {
		j := brief(t, name, 2, 1)
		_, err := workload.Run(t.Context(), peers(), j)
		if err == nil || !strings.Contains(err.Error(), errBroken.Error()) {
			t.Errorf("%s: error %v, want it to say %q", name, err, errBroken)
		}
		if left, _ := filepath.Glob(filepath.Join(j.Dir, "*")); len(left) > 0 {
			t.Errorf("%s: left behind %v", name, left)
		}
	}
}

func TestRun_RefusesJobsThatMakeNoSense(t *testing.T) {
	for _, j := range []workload.Job{
		brief(t, "sync.Mutex", 2, 1), brief(t, "no such peer", 1, 1), brief(t, "flock", 0, 1), brief(t, "flock", 1, 0),
	} {
		if _, err := workload.Run(t.Context(), peers(), j); err == nil {
			t.Errorf("%d processes of %s: no error", j.Processes, j.Peer)
		}
	}
}

func TestRun_KillsItsProcesses_WhenItsContextEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	j := brief(t, "flock", 2, 1)
	j.Time = time.Hour
	result := make(chan error, 1)
	go func() {
		_, err := workload.Run(ctx, peers(), j)
		result <- err
	}()
	cancel()
	if err := <-result; err == nil {
		t.Error("no error although the context ended")
	}
}

func TestChild_EndsWithItsParent(t *testing.T) {
	j := brief(t, "flock", 1, 2)
	j.Time = time.Hour
	c := startChild(t, j)
	c.CloseInput() // as when the parent has died
	exit := new(exec.ExitError)
	if err := c.Wait(); !errors.As(err, &exit) || exit.ExitCode() != 3 {
		t.Errorf("the worker ended with %v, want exit status 3", err)
	}
}

// Until all have their results a server must not lose the processes that it has for the sessions of one: with them goes
// what they have used.
func TestChild_KeepsItsPeer_UntilAllAreReady(t *testing.T) {
	c := startChild(t, brief(t, "leaving", 1, 1))
	c.hear(t) // its part
	if _, err := os.Stat(c.left); err == nil {
		t.Error("the peer was closed before the end")
	}
	c.say(t, struct{}{})
	if err := c.Wait(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(c.left); err != nil {
		t.Errorf("the peer was not closed: %v", err)
	}
}

// leaving leaves a file when it is closed.
type leaving struct {
	free
	left string
}

func openLeaving(_ context.Context, at peer.Place) (peer.Peer, error) {
	return leaving{left: leftIn(at.Dir)}, nil
}

func leftIn(dir string) string { return filepath.Join(dir, "left") }

func (l leaving) Close() error { return os.WriteFile(l.left, nil, 0o600) }

// theChild is a worker process of the test's own, which has begun.
type theChild struct {
	*childproc.Child
	left string // of leaving
}

func startChild(t *testing.T, j workload.Job) *theChild {
	t.Helper()
	cmd, err := childproc.Self(t.Context(), "bench/workload", "")
	if err != nil {
		t.Fatal(err)
	}
	child, err := childproc.Open(cmd, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(child.Kill)
	c := &theChild{child, leftIn(j.Dir)}
	c.say(t, j)
	c.hear(t) // it is ready
	c.say(t, map[string]int64{"At": time.Now().UnixNano()})
	return c
}

func (c *theChild) say(t *testing.T, message any) {
	t.Helper()
	if err := c.Send(message); err != nil {
		t.Fatal(err)
	}
}

func (c *theChild) hear(t *testing.T) {
	t.Helper()
	var reply struct{ Err string }
	if err := c.Receive(&reply); err != nil || reply.Err != "" {
		t.Fatal(err, reply.Err)
	}
}

func TestSharing_SeesWhoIsInsideAndMayNotBe(t *testing.T) {
	for _, sharing := range []peer.Sharing{peer.Nobody, peer.Readers, peer.Several} {
		j := brief(t, "none", 2, peer.Permits)
		j.Sharing = sharing
		if _, err := workload.Run(t.Context(), peers(), j); !errors.Is(err, workload.ErrOverlap) &&
			!strings.Contains(fmt.Sprint(err), workload.ErrOverlap.Error()) {
			t.Errorf("%q: a lock that lets everybody in: %v", sharing, err)
		}
	}
	j := brief(t, "interlock-redis-rw", 1, 1)
	j.Sharing, j.Redis = peer.Nobody, "localhost:1"
	_, err := workload.Run(t.Context(), peers(), j)
	if err == nil || !strings.Contains(err.Error(), "lets readers in together") {
		t.Errorf("readers where nobody is to be together: %v", err)
	}
}

func TestSerial_MeasuresEveryPeer(t *testing.T) {
	for _, p := range peer.All() {
		if p.Redis && server == "" || p.Engine != "" {
			continue
		}
		j := workload.Job{
			Kind: workload.Serial, Peer: p.Name, Dir: t.TempDir(), Time: time.Millisecond, Redis: serverOf(p.Name),
		}
		r, err := workload.Run(t.Context(), peers(), j)
		if err != nil || r.PerOp <= 0 {
			t.Errorf("%s: %v ns, %v", p.Name, r.PerOp, err)
		}
	}
}

func TestShares_OfManyProcesses_AreJudgedByProcess(t *testing.T) {
	r, err := workload.Run(t.Context(), peers(), brief(t, "flock", 2, 5))
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Shares) != 2 {
		t.Fatalf("%d shares, want 2", len(r.Shares))
	}
	if j := stats.Jain(r.Shares); j < 0.5 || j > 1 {
		t.Errorf("Jain index %v of 2 shares; it lies between 1/2 and 1", j)
	}
}
