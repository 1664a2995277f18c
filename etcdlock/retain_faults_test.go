package etcdlock_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/internal/servers"
)

// keeping is what a client that retains is opened with. No sign of life comes for a while.
func keeping(lease time.Duration) *interlock.Options {
	return &interlock.Options{Lease: lease, Retain: time.Hour}
}

// kept locks and unlocks, so that c retains the lock.
func kept(t *testing.T, c *interlock.Client, name string) (token uint64) {
	t.Helper()
	l := mustLock(t, c, name)
	mustUnlock(t, l)
	return l.Token()
}

// revision is what the server is at.
func revision(t *testing.T, n *servers.EtcdNode) any {
	t.Helper()
	return do(t, n, "kv/range", map[string]any{"key": b64("nothing")})["header"].(map[string]any)["revision"]
}

// mayBeRecalled is how long a recall may take on a busy machine. It is less than a sign of life of a calm session.
const mayBeRecalled = calm / 4

// getsIn fails unless c gets the lock in time.
func getsIn(t *testing.T, c *interlock.Client, name string, limit time.Duration) *interlock.Lease {
	t.Helper()
	begin := time.Now()
	l := mustLock(t, c, name)
	if took := time.Since(begin); took > limit {
		t.Errorf("it took %v, want at most %v", took, limit)
	}
	return l
}

// TestRetained_TakenAgainAndAgain_WritesNothing is about one block of tokens. The next one is another acquisition.
func TestRetained_TakenAgainAndAgain_WritesNothing(t *testing.T) {
	t.Parallel()
	s := servers.EtcdServer(t, nil)
	a := openLocks(t, etcdURL(s.Addr()), keeping(calm))
	last := kept(t, a, "lock")
	before := revision(t, s)
	const block = 64
	for range block - 2 { // after the last token the lock is given back
		token := kept(t, a, "lock")
		if token <= last {
			t.Fatalf("token %d after %d", token, last)
		}
		last = token
	}
	if now := revision(t, s); now != before {
		t.Errorf("the server is at %v, and was at %v", now, before)
	}
}

func TestRetained_IsGivenBackToWhoAsks(t *testing.T) {
	t.Parallel()
	s := servers.EtcdServer(t, nil)
	a, b := openLocks(t, etcdURL(s.Addr()), keeping(calm)), openLocks(t, etcdURL(s.Addr()), nil)
	first := kept(t, a, "lock")
	l := getsIn(t, b, "lock", mayBeRecalled)
	if l.Token() <= first {
		t.Errorf("token %d after %d", l.Token(), first)
	}
	mustUnlock(t, l)
	kept(t, a, "tried")
	mustUnlock(t, triesUntilRecalled(t, b, "tried"))
	held := mustLock(t, a, "tried")
	if _, err := b.TryLock(patient(t), "tried"); !errors.Is(err, interlock.ErrHeld) {
		t.Errorf("a try of what is held: %v", err)
	}
	mustUnlock(t, held)
	noneLeft(t, s)
}

// triesUntilRecalled tries to take a lock that is merely retained. A try asks for it, and waits for 50 ms at most: on a
// busy machine it may be refused before the lock is given back, and the next one is not.
func triesUntilRecalled(t *testing.T, c *interlock.Client, name string) *interlock.Lease {
	t.Helper()
	for begin := time.Now(); ; {
		l, err := c.TryLock(patient(t), name)
		if err == nil {
			return l
		}
		if !errors.Is(err, interlock.ErrHeld) || time.Since(begin) > mayBeRecalled {
			t.Fatalf("a try of what is merely retained, after %v: %v", time.Since(begin), err)
		}
	}
}

// TestRetained_IsShownAsSuch also has the retained lock be taken over, which shows it as held again.
func TestRetained_IsShownAsSuch(t *testing.T) {
	t.Parallel()
	s := servers.EtcdServer(t, nil)
	a, b := openLocks(t, etcdURL(s.Addr()), keeping(calm)), openLocks(t, etcdURL(s.Addr()), nil)
	shows := func(retained bool) {
		t.Helper()
		var last interlock.LockInfo
		if !within(faultsPatience, func() bool {
			for info, err := range b.List(patient(t), "") {
				if err != nil {
					t.Fatal(err)
				}
				last = info
			}
			return len(last.Holders) == 1 && last.Holders[0].Retained == retained
		}) {
			t.Fatalf("it is shown as %+v", last)
		}
	}
	kept(t, a, "lock")
	shows(true)
	l := mustLock(t, a, "lock")
	shows(false)
	mustUnlock(t, l)
	shows(true)
}

// A restart loses all watches and streams. What is asked meanwhile, or right after, is found when a watch begins.
func TestServerRestart_WhileALockIsRetained_ItIsRecalledAllTheSame(t *testing.T) {
	t.Parallel()
	s := servers.EtcdServer(t, nil)
	url := etcdURL(s.Addr()) + slowElection
	a, b := openLocks(t, url, keeping(calm)), openLocks(t, url, &interlock.Options{Lease: calm})
	kept(t, a, "lock")
	s.Restart()
	mustUnlock(t, getsIn(t, b, "lock", faultsPatience/2))
	kept(t, a, "lock")
	s.Kill()
	in := locking(t, b, "lock")
	s.Restart()
	mustUnlock(t, receive(t, "the lock to be given back", in))
	noneLeft(t, s)
}

func TestLeaderKilled_WhileALockIsRetained_ItIsRecalledAllTheSame(t *testing.T) {
	t.Parallel()
	c := servers.EtcdCluster(t, 3, nil)
	url := etcdURL(c.Addrs()...) + slowElection
	a, b := openLocks(t, url, keeping(calm)), openLocks(t, url, &interlock.Options{Lease: calm})
	kept(t, a, "lock")
	leader := c.Leader(t)
	leader.Kill()
	mustUnlock(t, receive(t, "the lock to be given back", locking(t, b, "lock")))
	leader.Restart()
	noneLeft(t, c.Leader(t))
}

// A client that is cut off does not hear the call, and its session ends.
func TestRetained_ByAClientThatIsCutOff_IsFreeWithItsSession(t *testing.T) {
	t.Parallel()
	s := servers.EtcdServer(t, nil)
	p := servers.NewProxy(t, s.Addr())
	a, b := openLocks(t, etcdURL(p.Addr()), keeping(brief)), openLocks(t, etcdURL(s.Addr()), nil)
	kept(t, a, "lock")
	p.BlackHole(servers.BothWays)
	l := getsIn(t, b, "lock", brief+afterSession)
	p.Pass()
	if _, err := a.TryLock(patient(t), "lock"); !errors.Is(err, interlock.ErrHeld) {
		t.Errorf("who had retained it gets %v", err)
	}
	mustUnlock(t, l)
	mustUnlock(t, mustLock(t, a, "lock"))
}

// afterSession is how long the servers take to notice the end of a session, and a busy machine to tell.
const afterSession = 2 * time.Second

// urlOfTheRetainer makes this test binary a process that retains a lock and is killed.
const urlOfTheRetainer = "INTERLOCK_TEST_RETAINER"

func TestRetained_ByAProcessThatIsKilled_IsFreeWithItsSession(t *testing.T) {
	if url := os.Getenv(urlOfTheRetainer); url != "" {
		kept(t, openLocks(t, url, keeping(brief)), "lock")
		_, _ = os.Stdout.WriteString("retained\n")
		select {} // until it is killed
	}
	t.Parallel()
	s := servers.EtcdServer(t, nil)
	b := openLocks(t, etcdURL(s.Addr()), nil)
	ctx, stop := context.WithCancel(patient(t))
	defer stop()
	child := exec.CommandContext(ctx, os.Args[0], "-test.run", "^"+t.Name()+"$")
	child.Env = append(os.Environ(), urlOfTheRetainer+"="+etcdURL(s.Addr()))
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	if n, err := out.Read(make([]byte, 64)); n == 0 {
		t.Fatalf("the process retains nothing: %v", err)
	}
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = child.Wait() // it was killed
	begin := time.Now()
	mustUnlock(t, getsIn(t, b, "lock", brief+afterSession))
	t.Logf("free %v after its process was killed, with a session of %v", time.Since(begin), brief)
}
