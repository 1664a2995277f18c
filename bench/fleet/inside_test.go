package fleet

import (
	"context"
	"fmt"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/interlock-go/interlock"
	_ "github.com/interlock-go/interlock/etcdlock" // etcd://
	_ "github.com/interlock-go/interlock/pglock"   // postgres://
	_ "github.com/interlock-go/interlock/zklock"   // zk://
	"github.com/jackc/pgx/v5"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
)

// inside makes a program that takes the old lock inside ours, as docs/migration.md shows it.
func inside(scheme string, open func(addr string) (locker, error)) func(addr string) (locker, error) {
	return func(addr string) (locker, error) {
		old, err := open(addr)
		if err != nil {
			return nil, err
		}
		locks, err := interlock.Open(context.Background(), scheme+addr, &interlock.Options{Lease: ttl})
		if err != nil {
			return nil, err
		}
		return func(ctx context.Context, name string) (func() bool, unlocked, error) {
			lease, err := locks.Lock(ctx, name)
			if err != nil {
				return nil, nil, err
			}
			mayWrite, unlock, err := old(lease.Context(ctx), name)
			if err != nil {
				return nil, nil, err
			}
			return func() bool { return lease.Err() == nil && mayWrite() }, func() error {
				if err := unlock(); err != nil {
					return err
				}
				return lease.Unlock(ctx)
			}, nil
		}, nil
	}
}

// openEtcd is the mutex of etcd's own client.
func openEtcd(addr string) (locker, error) {
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{addr}})
	if err != nil {
		return nil, err
	}
	session, err := concurrency.NewSession(client, concurrency.WithTTL(int(ttl/time.Second)))
	if err != nil {
		return nil, err
	}
	mayWrite := func() bool {
		select {
		case <-session.Done():
			return false
		default:
			return true
		}
	}
	return func(ctx context.Context, name string) (func() bool, unlocked, error) {
		m := concurrency.NewMutex(session, "/jobs/"+name)
		if err := m.Lock(ctx); err != nil {
			return nil, nil, err
		}
		return mayWrite, func() error { return m.Unlock(context.WithoutCancel(ctx)) }, nil
	}, nil
}

// openZooKeeper is the lock of go-zookeeper, which no context ends.
func openZooKeeper(addr string) (locker, error) {
	conn, _, err := zk.Connect([]string{addr}, ttl, zk.WithLogInfo(false))
	if err != nil {
		return nil, err
	}
	return func(_ context.Context, name string) (func() bool, unlocked, error) {
		l := zk.NewLock(conn, "/jobs/"+name, zk.WorldACL(zk.PermAll))
		if err := l.Lock(); err != nil {
			return nil, nil, err
		}
		return func() bool { return true }, l.Unlock, nil
	}, nil
}

// openShedLock is what ShedLock does with a table of PostgreSQL, by the server's clock. It does not renew, so no turn
// may take longer than ttl.
func openShedLock(addr string) (locker, error) {
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, "postgres://postgres@"+addr)
	if err != nil {
		return nil, err
	}
	const take = `INSERT INTO shedlock (name, lock_until, locked_at, locked_by)
		VALUES ($1, timezone('utc', now()) + $2, timezone('utc', now()), $3)
		ON CONFLICT (name) DO UPDATE SET lock_until = excluded.lock_until, locked_at = excluded.locked_at,
			locked_by = excluded.locked_by
		WHERE shedlock.lock_until <= timezone('utc', now())`
	const give = `UPDATE shedlock SET lock_until = timezone('utc', now()) WHERE name = $1 AND locked_by = $2`
	me := fmt.Sprint(time.Now().UnixNano())
	return func(ctx context.Context, name string) (func() bool, unlocked, error) {
		for {
			tag, err := conn.Exec(ctx, take, name, ttl, me)
			if err != nil {
				return nil, nil, err
			}
			if tag.RowsAffected() == 1 {
				break
			}
			select {
			case <-time.After(10 * time.Millisecond): // its own waiters poll too
			case <-ctx.Done():
				return nil, nil, ctx.Err()
			}
		}
		return func() bool { return true }, func() error {
			_, err := conn.Exec(context.WithoutCancel(ctx), give, name, me)
			return err
		}, nil
	}, nil
}
