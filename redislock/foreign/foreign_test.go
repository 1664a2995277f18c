package foreign_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/servers"
	"github.com/interlock-go/interlock/redislock"
	"github.com/interlock-go/interlock/redislock/foreign"
	"github.com/redis/rueidis"
)

// formats says what each library keeps for the lock "job" when "me" holds it: the key, and the commands with which
// its own documentation or source says that it takes it and gives it back.
var formats = map[string]struct {
	format     foreign.Format
	key        string
	take, give string
}{
	"redsync":   {foreign.Redsync(), "job", "SET job me NX PX 30000", "DEL job"},
	"redislock": {foreign.Redislock(), "job", "SET job me NX PX 30000", "DEL job"},
	"spring":    {foreign.Spring("orders"), "orders:job", "SET orders:job me NX PX 60000", "DEL orders:job"},
	"shedlock": {
		foreign.ShedLock("prod"), "job-lock:prod:job",
		"SET job-lock:prod:job me NX PX 60000", "DEL job-lock:prod:job",
	},
	"redisson": {foreign.Redisson(), "job", "HSET job 3f0c:41 1", "DEL job"},
}

// waitInVain returns how a Lock ends whose context ends while it waits. A busy machine may not answer within the first
// 100 ms; then the wait is longer.
func waitInVain(t *testing.T, locks *interlock.Client) (err error) {
	t.Helper()
	for wait := 100 * time.Millisecond; wait < time.Minute; wait *= 4 {
		ctx, cancel := context.WithTimeout(t.Context(), wait)
		_, err = locks.Lock(ctx, "job")
		cancel()
		if !errors.Is(err, interlock.ErrUnavailable) {
			return err
		}
	}
	return err
}

// A holder of the other library is in the way, a Lock waits for it, and while one of ours holds the lock the other
// library's own command takes nothing.
func TestLock_InEachFormat_ExcludesTheOtherLibrary(t *testing.T) {
	for name, f := range formats {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			addr := servers.Redis(t)
			redis, locks := dial(t, addr), client(t, addr, f.format)
			do(t, redis, f.take)
			var held *interlock.HeldError
			if _, err := locks.TryLock(t.Context(), "job"); !errors.As(err, &held) || held.Client != "another library" {
				t.Fatalf("a try beside a holder of the other library: %v", err)
			}
			err := waitInVain(t, locks)
			if !errors.Is(err, interlock.ErrHeld) || !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("a wait that its context ends: %v", err)
			}
			got := make(chan *interlock.Lease, 1)
			go func() {
				l, err := locks.Lock(t.Context(), "job")
				if err != nil {
					t.Error(err)
				}
				got <- l
			}()
			do(t, redis, f.give)
			l := <-got
			if t.Failed() {
				return
			}
			if left := do(t, redis, "PTTL "+f.key); left == "-1" || left == "-2" {
				t.Errorf("the other library's key has a time to live of %s", left)
			}
			if strings.HasPrefix(f.take, "SET") {
				if answer := do(t, redis, f.take); answer != "" {
					t.Errorf("the other library takes it beside us: %s", answer)
				}
			} else if kind := do(t, redis, "TYPE "+f.key); kind != "hash" {
				t.Errorf("the key is a %s", kind)
			}
			if err := l.Unlock(t.Context()); err != nil {
				t.Error(err)
			}
			if left := do(t, redis, "EXISTS "+f.key); left != "0" {
				t.Error("the other library's key is still there after Unlock")
			}
		})
	}
}

// Redisson's waiters listen on a channel, which goes to the key's slot.
func TestUnlock_InTheFormatOfRedisson_TellsItsWaiters(t *testing.T) {
	for name, channel := range map[string]string{
		"job": "redisson_lock__channel:{job}", "{shop}:job": "redisson_lock__channel:{shop}:job",
	} {
		t.Run(name, func(t *testing.T) { tellsItsWaiters(t, name, channel) })
	}
}

func tellsItsWaiters(t *testing.T, name, channel string) {
	addr := servers.Redis(t)
	redis, locks := dial(t, addr), client(t, addr, foreign.Redisson())
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	heard := make(chan string, 1)
	listens := make(chan struct{})
	sub, release := redis.Dedicate()
	defer release()
	sub.SetPubSubHooks(rueidis.PubSubHooks{
		OnMessage:      func(m rueidis.PubSubMessage) { heard <- m.Message },
		OnSubscription: func(rueidis.PubSubSubscription) { close(listens) },
	})
	sub.Do(ctx, sub.B().Subscribe().Channel(channel).Build())
	<-listens
	l, err := locks.Lock(ctx, name)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Unlock(ctx); err != nil {
		t.Fatal(err)
	}
	if message := <-heard; message != "0" {
		t.Errorf("its waiters heard %q", message)
	}
}

// Whoever deletes the key, or takes it, has ended the hold.
func TestKey_ThatIsGone_IsALoss(t *testing.T) {
	for _, does := range []string{"DEL job", "SET job somebody"} {
		addr := servers.Redis(t)
		redis, locks := dial(t, addr), client(t, addr, foreign.Redsync())
		renewed, err := locks.Mutex("job", &interlock.LockOptions{Lease: time.Second}).Lock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		do(t, redis, does)
		<-renewed.Lost()
		if err := renewed.Err(); !errors.Is(err, interlock.ErrLost) || !strings.Contains(err.Error(), "other library") {
			t.Errorf("after %s the lease ended with %v", does, err)
		}
		do(t, redis, "DEL job")
		l, err := locks.Lock(t.Context(), "job")
		if err != nil {
			t.Fatal(err)
		}
		do(t, redis, does)
		if err := l.Unlock(t.Context()); !errors.Is(err, interlock.ErrLost) {
			t.Errorf("after %s, Unlock: %v", does, err)
		}
	}
}

// isSoonGone waits until a key is gone, which by itself it would be in half an hour.
func isSoonGone(t *testing.T, redis rueidis.Client, key string) {
	t.Helper()
	end := time.Now().Add(20 * time.Second)
	for ; do(t, redis, "EXISTS "+key) != "0"; <-time.After(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s is still there", key)
		}
	}
}

// What is left of a hold whose other part was lost would keep both libraries out until the lease ends.
func TestHold_OfWhichOnePartIsLost_GivesTheOtherBack(t *testing.T) {
	for name, test := range map[string]struct{ lost, left string }{
		"the other library's": {"job", "interlock:mutex:job"}, "ours": {"interlock:mutex:job", "job"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			addr := servers.Redis(t)
			redis := dial(t, addr)
			locks, err := interlock.New(over(t, addr, foreign.Redsync()), &interlock.Options{
				Lease: 30 * time.Minute, Renewal: 50 * time.Millisecond,
			})
			if err != nil {
				t.Fatal(err)
			}
			defer locks.Close()
			l, err := locks.Lock(t.Context(), "job")
			if err != nil {
				t.Fatal(err)
			}
			do(t, redis, "DEL "+test.lost)
			<-l.Lost()
			isSoonGone(t, redis, test.left)
			next, err := locks.TryLock(t.Context(), "job")
			if err != nil {
				t.Fatal(err)
			}
			if err := next.Unlock(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestBreak_FreesTheOtherLibrarysKeyToo(t *testing.T) {
	for name, f := range formats {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			addr := servers.Redis(t)
			redis, engine := dial(t, addr), over(t, addr, f.format).(*foreign.Driver)
			t.Cleanup(func() { _ = engine.Close() })
			key := driver.Key{Kind: driver.KindMutex, Name: "job"}
			take := func(id string) driver.Grant {
				t.Helper()
				g, err := engine.Acquire(t.Context(), &driver.Request{
					Key: key, ID: id, Mode: driver.Exclusive, Try: true, Lease: time.Minute, Tokens: 8,
				})
				if err != nil {
					t.Fatal(err)
				}
				return g
			}
			g := take("one")
			if err := engine.Break(t.Context(), key, g.Token+1); err != nil { // as it was passed on in the process
				t.Fatal(err)
			}
			if do(t, redis, "EXISTS "+f.key) != "0" {
				t.Error("the other library's key is still there")
			}
			// A late copy of that Break must not take the key of the next.
			take("two")
			if err := engine.Break(t.Context(), key, g.Token+1); !errors.Is(err, driver.ErrHeld) {
				t.Errorf("a second Break: %v", err)
			}
			do(t, redis, "DEL interlock:mutex:job") // as a Break that did not come to the other key
			if err := engine.Break(t.Context(), key, g.Token+1); !errors.Is(err, driver.ErrNotHeld) {
				t.Errorf("a Break of a lock that nobody holds: %v", err)
			}
			if do(t, redis, "EXISTS "+f.key) != "1" {
				t.Error("the key of a later hold is gone")
			}
		})
	}
}

// A key of another form is no lock of that library: who waited for it would wait for ever.
func TestKey_OfAnotherForm_IsRefused(t *testing.T) {
	addr := servers.Redis(t)
	redis, locks := dial(t, addr), client(t, addr, foreign.Redsync())
	do(t, redis, "HSET job field 1")
	var refused *interlock.RefusedError
	_, err := locks.Lock(t.Context(), "job")
	if !errors.As(err, &refused) || !strings.Contains(err.Error(), "foreign.New") {
		t.Fatalf("Lock: %v", err)
	}
	do(t, redis, "DEL job")
	l, err := locks.TryLock(t.Context(), "job")
	if err != nil {
		t.Fatalf("our own lock was not given back: %v", err)
	}
	if err := l.Unlock(t.Context()); err != nil {
		t.Error(err)
	}
}

// What a process of ours left behind is in the way of the other library until its time has run out, and not in ours.
func TestKey_OfAHoldThatHasEnded_IsTakenOver(t *testing.T) {
	addr := servers.Redis(t)
	redis, locks := dial(t, addr), client(t, addr, foreign.Redsync())
	do(t, redis, "SET job interlock:mutex:job:00000000000000000000:gone PX 60000")
	l, err := locks.TryLock(t.Context(), "job")
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Unlock(t.Context()); err != nil {
		t.Error(err)
	}
}

// Programs of two prefixes do not exclude each other, but they share the key: one must not end what the other relies
// on.
func TestKey_OfAProgramWithAnotherPrefix_IsHeld(t *testing.T) {
	addr := servers.Redis(t)
	var locks [2]*interlock.Client
	for i := range locks {
		ours, err := redislock.New(dial(t, addr), &redislock.Options{Prefix: fmt.Sprint("team", i, ":")})
		if err != nil {
			t.Fatal(err)
		}
		locks[i] = clientOf(t, foreign.New(ours, foreign.Redsync()))
	}
	for range 3 { // so that the second has larger tokens
		l, err := locks[1].TryLock(t.Context(), "job")
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Unlock(t.Context()); err != nil {
			t.Error(err)
		}
	}
	l, err := locks[0].TryLock(t.Context(), "job")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := locks[1].TryLock(t.Context(), "job"); !errors.Is(err, interlock.ErrHeld) {
		t.Errorf("a try with another prefix: %v", err)
	}
	if err := l.Unlock(t.Context()); err != nil {
		t.Error(err)
	}
}

// Who may not touch the other library's key is told so, and is not sent waiting as for a server that is away.
func TestLock_WithoutTheRightToTheKey_IsRefused(t *testing.T) {
	addr := servers.Redis(t)
	redis := dial(t, addr)
	do(t, redis, "ACL SETUSER default resetkeys ~interlock:*")
	locks := client(t, addr, foreign.Redsync())
	var refused *interlock.RefusedError
	if _, err := locks.Lock(t.Context(), "job"); !errors.As(err, &refused) {
		t.Fatalf("Lock: %v", err)
	}
	// And its lock is given back, although the key cannot be: a client of ours alone gets in.
	ours, err := redislock.New(redis, nil)
	if err != nil {
		t.Fatal(err)
	}
	soon, cancel := context.WithTimeout(t.Context(), 10*time.Second) // a lease is longer
	defer cancel()
	l, err := clientOf(t, ours).Lock(soon, "job")
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Unlock(t.Context()); err != nil {
		t.Error(err)
	}
}

// Whichever of several releases gives the key back, one of them says that it has ended the hold, and none that the
// hold was lost to the other library.
func TestRelease_SeveralAtOnce_OneEndsTheHold(t *testing.T) {
	engine := over(t, servers.Redis(t), foreign.Redsync())
	t.Cleanup(func() { _ = engine.Close() })
	key := driver.Key{Kind: driver.KindMutex, Name: "job"}
	for n := range 300 {
		id := fmt.Sprint("hold-", n)
		r := &driver.Request{Key: key, ID: id, Mode: driver.Exclusive, Try: true, Lease: time.Minute}
		if _, err := engine.Acquire(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		var all sync.WaitGroup
		var ended atomic.Int32
		for range 4 {
			all.Go(func() {
				err := engine.Release(t.Context(), &driver.Release{Key: key, ID: id})
				var lost *driver.LostError
				switch taken := errors.As(err, &lost) && lost.Reason == driver.LostTaken; {
				case err == nil:
					ended.Add(1)
				case taken || !errors.Is(err, driver.ErrLost):
					t.Error(err)
				}
			})
		}
		all.Wait()
		if ended.Load() != 1 {
			t.Fatalf("hold %d: %d releases ended it", n, ended.Load())
		}
	}
}

// A server that was restarted without its memory has forgotten both locks. The holder hears of it when the client is
// connected again, and not when the lease is to be renewed.
func TestRestart_ThatForgets_IsToldWithTheReconnection(t *testing.T) {
	s := servers.RedisServer(t, nil)
	engine := over(t, s.Addr(), foreign.Redsync())
	t.Cleanup(func() { _ = engine.Close() })
	locks, err := interlock.New(engine, &interlock.Options{Lease: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = locks.Close() })
	l, err := locks.Lock(t.Context(), "job")
	if err != nil {
		t.Fatal(err)
	}
	s.Kill()
	s.Restart()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	select {
	case <-l.Lost():
	case <-ctx.Done():
		t.Fatal("the holder was not told")
	}
}

func client(t *testing.T, addr string, f foreign.Format) *interlock.Client {
	t.Helper()
	return clientOf(t, over(t, addr, f))
}

func clientOf(t *testing.T, engine driver.Driver) *interlock.Client {
	t.Helper()
	t.Cleanup(func() { _ = engine.Close() })
	locks, err := interlock.New(engine, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = locks.Close() })
	return locks
}

// do runs a command, as a person would write it, and returns what it answers.
func do(t *testing.T, redis rueidis.Client, command string) string {
	t.Helper()
	words := strings.Fields(command)
	answer, err := redis.Do(t.Context(), redis.B().Arbitrary(words...).Build()).ToAny()
	if rueidis.IsRedisNil(err) {
		return ""
	}
	if err != nil {
		t.Fatalf("%s: %v", command, err)
	}
	return fmt.Sprint(answer)
}
