package target

import (
	"context"
	"database/sql"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	"github.com/interlock-go/interlock/internal/servers"
)

// left lists what a server still has that no clock will remove and that is not documented to stay.
type left func(ctx context.Context) ([]string, error)

// Left lists what is left in the servers when all holds, waits and leases are over and all clients have gone. The
// engines file and memory have nothing to list: their locks end with their processes.
func (i *Instance) Left(ctx context.Context) ([]string, error) {
	if i.left == nil {
		return nil, nil
	}
	return i.left(ctx)
}

// redisLeft lists the keys that never end, of all servers that take writes, but for the floors of tokens, the mark of a
// node of Redlock, and latches, which a client that was killed has left above zero.
func redisLeft(stores func() []*servers.RedisNode) left {
	return func(ctx context.Context) (found []string, err error) {
		for _, s := range stores() {
			of, err := endless(ctx, s)
			if err != nil {
				return nil, err
			}
			found = append(found, of...)
		}
		return found, nil
	}
}

func endless(ctx context.Context, n *servers.RedisNode) (found []string, err error) {
	answer, err := n.Do(ctx, "KEYS", "*")
	if err != nil {
		return nil, err
	}
	keys, _ := answer.([]any)
	for _, key := range keys {
		name := fmt.Sprint(key)
		_, kind, _ := strings.Cut(name, ":")
		if kind == "redlock" || strings.HasPrefix(kind, "floor:") || strings.HasPrefix(kind, "latch:") {
			continue
		}
		ends, err := n.Do(ctx, "PTTL", name)
		if err != nil {
			return nil, err
		}
		if fmt.Sprint(ends) == "-1" {
			found = append(found, fmt.Sprintf("the key %s of %s never ends", name, n.Addr()))
		}
	}
	return found, nil
}

// etcdLeft lists the keys that end with no lease.
func etcdLeft(n *servers.EtcdNode) left {
	return func(ctx context.Context) (found []string, err error) {
		answer, err := n.Do(ctx, "kv/range", allKeys)
		if err != nil {
			return nil, err
		}
		kvs, _ := answer["kvs"].([]any)
		for _, kv := range kvs {
			of, _ := kv.(map[string]any)
			if lease := of["lease"]; lease != nil && lease != "0" {
				continue
			}
			key, err := base64.StdEncoding.DecodeString(fmt.Sprint(of["key"]))
			if err != nil {
				return nil, err
			}
			found = append(found, fmt.Sprintf("the key %q has no lease", key))
		}
		return found, nil
	}
}

// postgresLeft lists the advisory locks that somebody has or waits for, and the sessions of clients.
func postgresLeft(url string) left {
	return sqlLeft("pgx", url,
		`SELECT 'process ' || pid || ' has or wants the advisory lock ' || classid || '/' || objid FROM pg_locks WHERE locktype = 'advisory'`,
		`SELECT 'the session of process ' || pid || ' has not ended' FROM pg_stat_activity
			WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()`)
}

// mariaDBLeft lists the locks of rows that a session has, and the sessions of clients: each has a lock of
// its own, that no row names.
func mariaDBLeft(dsn string) left {
	return sqlLeft("mysql", dsn,
		`SELECT CONCAT('connection ', IS_USED_LOCK(CONCAT('il1:', LOWER(HEX(id)))), ' has the lock of the ', kind, ' ', name) FROM interlock
			WHERE IS_USED_LOCK(CONCAT('il1:', LOWER(HEX(id)))) IS NOT NULL`,
		`SELECT CONCAT('connection ', id, ' has not ended') FROM information_schema.processlist
			WHERE user = 'root' AND id <> connection_id()`)
}

// sqlLeft lists what the queries say is left.
func sqlLeft(driver, address string, queries ...string) left {
	return func(ctx context.Context) (found []string, err error) {
		err = onDatabase(driver, address, func(db *sql.DB) error {
			for _, query := range queries {
				rows, err := db.QueryContext(ctx, query)
				if err != nil {
					return err
				}
				for rows.Next() {
					var what string
					if err := rows.Scan(&what); err != nil {
						return errors.Join(err, rows.Close())
					}
					found = append(found, what)
				}
				if err := errors.Join(rows.Err(), rows.Close()); err != nil {
					return err
				}
			}
			return nil
		})
		return found, err
	}
}
