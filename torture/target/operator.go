package target

import (
	"context"
	"database/sql"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	_ "github.com/go-sql-driver/mysql" // the database/sql driver
	"github.com/interlock-go/interlock/enginekit"
	"github.com/interlock-go/interlock/internal/servers"
	_ "github.com/jackc/pgx/v5/stdlib" // the database/sql driver
)

// ErrNothing says that a fault has found nothing that it could be done to, so that nothing was done.
var ErrNothing = errors.New("there was nothing to do it to")

// once does something as soon as there is something to do it to.
func once(do func(ctx context.Context, dice *rand.Rand) (done bool, err error)) Inject {
	return func(ctx context.Context, dice *rand.Rand, lasts time.Duration) error {
		for end := time.Now().Add(lasts); time.Now().Before(end) && ctx.Err() == nil; enginekit.Pause(ctx,
			10*time.Millisecond) {
			if done, err := do(ctx, dice); done || err != nil {
				return err
			}
		}
		return ErrNothing
	}
}

// redisOperator are the faults that somebody does to all of the Redis servers that take writes, or to one of them.
func redisOperator(stores func() []*servers.RedisNode) map[Fault]Inject {
	return map[Fault]Inject{
		Forget: command(stores, "SCRIPT", "FLUSH"), Wipe: command(stores, "FLUSHALL"), Delete: deleteOneKey(stores),
		Sessions: func(ctx context.Context, dice *rand.Rand, lasts time.Duration) error {
			all := stores()
			return killClients(all[dice.IntN(len(all))])(ctx, dice, lasts)
		},
	}
}

// command sends each of the servers a command.
func command(stores func() []*servers.RedisNode, args ...string) Inject {
	return func(ctx context.Context, _ *rand.Rand, _ time.Duration) error {
		for _, s := range stores() {
			if _, err := s.Do(ctx, args...); err != nil {
				return err
			}
		}
		return nil
	}
}

// deleteOneKey deletes the key of one mutex, and with it its holder and all waiters, from all servers that have it.
func deleteOneKey(stores func() []*servers.RedisNode) Inject {
	return once(func(ctx context.Context, dice *rand.Rand) (bool, error) {
		keys, has, err := mutexKeys(ctx, stores())
		if err != nil || len(keys) == 0 {
			return false, err
		}
		key := keys[dice.IntN(len(keys))]
		for _, s := range has[key] {
			if _, err := s.Do(ctx, "DEL", key); err != nil {
				return false, err
			}
		}
		return true, nil
	})
}

// mutexKeys are the keys of all mutexes, in order, and which of the servers has each.
func mutexKeys(
	ctx context.Context, stores []*servers.RedisNode,
) (keys []string, has map[string][]*servers.RedisNode, err error) {
	has = map[string][]*servers.RedisNode{}
	for _, s := range stores {
		answer, err := s.Do(ctx, "KEYS", "interlock:mutex:*")
		if err != nil {
			return nil, nil, err
		}
		found, _ := answer.([]any)
		for _, key := range found {
			name := fmt.Sprint(key)
			has[name] = append(has[name], s)
		}
	}
	return slices.Sorted(maps.Keys(has)), has, nil
}

// mutexHolders are the requests that have mutexes, as they are known to a Redis server; without those of holds that are
// not alone or not anonymous, which nobody can read here.
func mutexHolders(ctx context.Context, s *servers.RedisNode) (ids []string, err error) {
	keys, _, err := mutexKeys(ctx, []*servers.RedisNode{s})
	if err != nil {
		return nil, err
	}
	for _, key := range keys {
		at := 1 // in redislock/wire.md: the place of the ID in a thin lock
		answer, err := s.Do(ctx, "GET", key)
		if isRefusal(err) { // it is a hash, whose holds have theirs elsewhere
			at = 3
			answer, err = s.Do(ctx, "HGET", key, "h")
		}
		if err != nil && !isRefusal(err) { // it has become a string meanwhile
			return nil, err
		}
		if words := strings.Fields(fmt.Sprint(answer)); len(words) > at {
			ids = append(ids, words[at])
		}
	}
	return ids, nil
}

// deleteKeys deletes all keys of an etcd.
func deleteKeys(s *servers.EtcdNode) Inject {
	return func(ctx context.Context, _ *rand.Rand, _ time.Duration) error {
		_, err := s.Do(ctx, "kv/deleterange", allKeys)
		return err
	}
}

// deleteOneLock deletes the places of all who hold one mutex, or wait for it.
func deleteOneLock(s *servers.EtcdNode) Inject {
	return once(func(ctx context.Context, dice *rand.Rand) (bool, error) {
		answer, err := s.Do(ctx, "kv/range", below("interlock/mutex/"))
		if err != nil {
			return false, err
		}
		found, _ := answer["kvs"].([]any)
		if len(found) == 0 {
			return false, nil
		}
		one, _ := found[dice.IntN(len(found))].(map[string]any)
		place, err := base64.StdEncoding.DecodeString(fmt.Sprint(one["key"]))
		if err != nil {
			return false, err
		}
		_, err = s.Do(ctx, "kv/deleterange", below(string(place[:strings.LastIndexByte(string(place), '/')+1])))
		return err == nil, err
	})
}

// allKeys is the range of all keys of an etcd: from that of one zero byte, which is AA== in base64, to the end.
var allKeys = map[string]any{"key": "AA==", "range_end": "AA=="}

// below is the range of the keys that begin with a folder, which ends with a slash: a zero follows it in ASCII.
func below(folder string) map[string]any {
	in64 := base64.StdEncoding.EncodeToString
	return map[string]any{"key": in64([]byte(folder)), "range_end": in64([]byte(strings.TrimSuffix(folder, "/") + "0"))}
}

// atAnyOf does to one of several servers what is done to one.
func atAnyOf[S any](nodes []S, inject func(s S) Inject) Inject {
	return func(ctx context.Context, dice *rand.Rand, lasts time.Duration) error {
		return inject(nodes[dice.IntN(len(nodes))])(ctx, dice, lasts)
	}
}

// endPostgresSessions ends everybody else's sessions, as an operator who restarts an application does.
func endPostgresSessions(url string) Inject {
	return func(ctx context.Context, _ *rand.Rand, _ time.Duration) error {
		return onDatabase("pgx", url, func(db *sql.DB) error {
			_, err := db.ExecContext(ctx, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
				WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()`)
			return err
		})
	}
}

func endMariaDBSessions(dsn string) Inject {
	return func(ctx context.Context, _ *rand.Rand, _ time.Duration) error {
		return onDatabase("mysql", dsn, func(db *sql.DB) error {
			rows, err := db.QueryContext(ctx,
				"SELECT id FROM information_schema.processlist WHERE user = 'root' AND id <> connection_id()")
			if err != nil {
				return err
			}
			var ids []int64
			for rows.Next() {
				var id int64
				if err := rows.Scan(&id); err != nil {
					return errors.Join(err, rows.Close())
				}
				ids = append(ids, id)
			}
			for _, id := range ids {
				_, _ = db.ExecContext(ctx, "KILL ?", id) // some have ended meanwhile
			}
			return errors.Join(rows.Err(), rows.Close())
		})
	}
}

func onDatabase(driver, address string, do func(db *sql.DB) error) error {
	db, err := sql.Open(driver, address)
	if err != nil {
		return err
	}
	db.SetMaxOpenConns(1) // so that it knows itself
	return errors.Join(do(db), db.Close())
}

// revokeLeases revokes every lease, and with it the session that keeps it alive.
func revokeLeases(s *servers.EtcdNode) Inject {
	return func(ctx context.Context, _ *rand.Rand, _ time.Duration) error {
		answer, err := s.Do(ctx, "lease/leases", map[string]any{})
		if err != nil {
			return err
		}
		leases, _ := answer["leases"].([]any)
		for _, lease := range leases {
			of, _ := lease.(map[string]any)
			_, _ = s.Do(ctx, "lease/revoke", map[string]any{"ID": of["ID"]}) // some have ended meanwhile
		}
		return nil
	}
}
