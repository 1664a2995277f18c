package fleet

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/bsm/redislock"
	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/internal/childproc"
	ours "github.com/interlock-go/interlock/redislock"
	"github.com/interlock-go/interlock/redislock/foreign"
	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
)

// ttl is for how long a lock outlives who took it, in every library. Some do not renew, so it is longer than any turn
// takes beside other work.
const ttl = 3 * time.Second

// unlocked is what a lock of any library is given back by.
type unlocked func() error

// locker takes the lock of a name, and waits for it for as long as it takes. mayWrite says whether the library still
// says so.
type locker func(ctx context.Context, name string) (mayWrite func() bool, unlock unlocked, err error)

// lockers makes each library's way to the lock, over a server.
var lockers = map[string]func(addr string) (locker, error){
	"redsync": openRedsync, "bsm": openBSM, "interlock": openInterlock,
	"etcd": openEtcd, "interlock+etcd": inside("etcd://", openEtcd),
	"zookeeper": openZooKeeper, "interlock+zookeeper": inside("zk://", openZooKeeper),
	"shedlock": openShedLock, "interlock+shedlock": inside("postgres://postgres@", openShedLock),
}

func openRedsync(addr string) (locker, error) {
	maker := redsync.New(goredis.NewPool(redis.NewClient(&redis.Options{Addr: addr})))
	return func(ctx context.Context, name string) (func() bool, unlocked, error) {
		m := maker.NewMutex(name,
			redsync.WithExpiry(ttl), redsync.WithTries(1<<30), redsync.WithRetryDelay(10*time.Millisecond))
		if err := m.LockContext(ctx); err != nil {
			return nil, nil, err
		}
		return func() bool { return time.Now().Before(m.Until()) }, func() error {
			_, err := m.UnlockContext(ctx)
			return err
		}, nil
	}, nil
}

func openBSM(addr string) (locker, error) {
	client := redislock.New(redis.NewClient(&redis.Options{Addr: addr}))
	wait := &redislock.Options{RetryStrategy: redislock.LinearBackoff(10 * time.Millisecond)}
	return func(ctx context.Context, name string) (func() bool, unlocked, error) {
		ctx, cancel := context.WithTimeout(ctx, time.Minute) // without one it gives up after a lease
		defer cancel()
		l, err := client.Obtain(ctx, name, ttl, wait)
		if err != nil {
			return nil, nil, err
		}
		return func() bool { return true }, func() error { return l.Release(context.WithoutCancel(ctx)) }, nil
	}, nil
}

func openInterlock(addr string) (locker, error) {
	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{addr}, DisableCache: true})
	if err != nil {
		return nil, err
	}
	d, err := ours.New(client, nil)
	if err != nil {
		return nil, err
	}
	locks, err := interlock.New(foreign.New(d, foreign.Redsync()), &interlock.Options{Lease: ttl})
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, name string) (func() bool, unlocked, error) {
		l, err := locks.Lock(ctx, name)
		if err != nil {
			return nil, nil, err
		}
		return func() bool { return l.Err() == nil }, func() error { return l.Unlock(ctx) }, nil
	}, nil
}

// order is what a member of the fleet is told to do.
type order struct {
	Library, Addr, ID string
	List              string        // the address of the Redis where all write
	Turns             int           // how often it takes the lock; 0 is for ever
	Work              time.Duration // before each write, so that a turn takes longer than to get the lock
	Stops             bool          // it says when it is inside, and goes on when it is told
}

// news is what a member says: that it has connected and waits for the start, that it is inside, or how it has ended.
type news struct {
	Ready  bool
	Inside bool
	Err    string
	Wrote  int
}

// The names of what the fleet shares: the lock, and a list of who wrote. Each turn writes its own name three times,
// so that two turns at once leave a trace which the server itself has put in order.
const (
	lockName = "stock"
	written  = "written"
	writes   = 3
)

func TestMain(m *testing.M) {
	if os.Getenv("FLEET_MEMBER") == "" {
		os.Exit(m.Run())
	}
	parent := childproc.JSON(os.Stdin, os.Stdout)
	var o order
	if err := parent.Receive(&o); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	wrote, err := serve(context.Background(), parent, o)
	last := news{Wrote: wrote}
	if err != nil {
		last.Err = err.Error()
	}
	_ = parent.Send(last)
}

// serve takes its turns.
func serve(ctx context.Context, parent *childproc.Conn, o order) (wrote int, err error) {
	lock, err := lockers[o.Library](o.Addr)
	if err != nil {
		return 0, err
	}
	list := redis.NewClient(&redis.Options{Addr: o.List})
	var begins bool
	if err := errors.Join(parent.Send(news{Ready: true}), parent.Receive(&begins)); err != nil {
		return 0, err
	}
	for n := 0; o.Turns == 0 || n < o.Turns; n++ {
		mayWrite, unlock, err := lock(ctx, lockName)
		if err != nil {
			return wrote, fmt.Errorf("turn %d: %w", n, err)
		}
		if o.Stops {
			var on bool
			if err := errors.Join(parent.Send(news{Inside: true}), parent.Receive(&on)); err != nil {
				return wrote, err
			}
		}
		for range writes {
			time.Sleep(o.Work) // real: it is what the member does
			if !mayWrite() {
				return wrote, errors.New("the lock was lost")
			}
			if err := list.RPush(ctx, written, fmt.Sprint(o.ID, " ", n)).Err(); err != nil {
				return wrote, err
			}
			wrote++
		}
		if err := unlock(); err != nil {
			return wrote, fmt.Errorf("turn %d: unlock: %w", n, err)
		}
	}
	return wrote, nil
}
