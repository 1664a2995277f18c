package target

import (
	"context"
	"database/sql"
	"errors"
)

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
