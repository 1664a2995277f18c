package target

import (
	"context"
	"database/sql"
	"errors"
	"math/rand/v2"
	"time"

	_ "github.com/go-sql-driver/mysql" // the database/sql driver
	"github.com/interlock-go/interlock/internal/servers"
	_ "github.com/jackc/pgx/v5/stdlib" // the database/sql driver
)

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
