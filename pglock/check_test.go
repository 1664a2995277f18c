package pglock

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/servers"
	"github.com/jackc/pgx/v5/pgconn"
)

// wantSaid fails unless the doctor says that.
func wantSaid(t *testing.T, d *Driver, check string, level driver.Level, says string) {
	t.Helper()
	f := finding(t, d, check)
	if f.Level != level || !strings.Contains(f.Detail, says) || f.Level != driver.LevelOK && f.Advice == "" {
		t.Errorf("got %+v, want %s and %q", f, level, says)
	}
}

// Limits of the role and of the database count as the server's does, also for a role that sees little of others.
func TestDoctor_SeesTheLeastRoomForConnections(t *testing.T) {
	n := sharedServer(t)
	ops, table := newAdmin(t, n), ownTable()
	_ = open(t.Context(), t, n.Addr(), Options{Table: table}).Close() // makes the tables
	ops.query("CREATE ROLE narrow LOGIN; GRANT SELECT, INSERT, UPDATE, DELETE "+
		"ON %[1]s, %[1]s_waits, %[1]s_breaks, %[1]s_readers TO narrow", table)
	d, err := driverAs(t, n, "narrow", Options{Table: table})
	if err != nil {
		t.Fatal(err)
	}
	wantSaid(t, d, "connections", driver.LevelOK, " of 197 of the server") // 200, and 3 for superusers
	for range 10 {
		newAdmin(t, n)
	}
	if used := strings.Fields(finding(t, d, "connections").Detail)[0]; len(used) < 2 {
		t.Errorf("ten sessions of another role are there, and the doctor counts %s", used)
	}
	ops.query("ALTER ROLE narrow CONNECTION LIMIT 5")
	wantSaid(t, d, "connections", driver.LevelWarn, "1 of 5 of the role")
	ops.query("ALTER ROLE narrow CONNECTION LIMIT 100")
	wantSaid(t, d, "connections", driver.LevelOK, "1 of 100 of the role")
	ops.query("ALTER DATABASE postgres CONNECTION LIMIT 25")
	defer ops.query("ALTER DATABASE postgres CONNECTION LIMIT -1")
	wantSaid(t, d, "connections", driver.LevelWarn, "of 25 of the database")
}

// A connection for replication is what a standby looks like to the primary.
func TestDoctor_SeesThatNoCommitWaitsForTheStandbys(t *testing.T) {
	n := servers.PostgresServer(t, &servers.PostgresOptions{
		Config: map[string]string{"max_wal_senders": "2", "wal_level": "replica", "fsync": "on"},
	})
	d := open(t.Context(), t, n.Addr(), Options{})
	defer func() { _ = d.Close() }()
	wantSaid(t, d, "tokens", driver.LevelOK, "on disk")
	config := configOf(t, n.Addr())
	config.RuntimeParams["replication"] = "true"
	standby, err := pgconn.ConnectConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = standby.Close(background) }()
	wantSaid(t, d, "tokens", driver.LevelWarn, "the 1 standbys")
	ops := newAdmin(t, n)
	ops.query("ALTER SYSTEM SET synchronous_standby_names = 'one'")
	ops.query("SELECT pg_reload_conf()")
	until(t, 10*time.Second, func() error {
		if f := finding(t, d, "tokens"); f.Level != driver.LevelOK {
			return fmt.Errorf("%+v", f)
		}
		return nil
	})
	wantSaid(t, d, "tokens", driver.LevelOK, "on the standbys")
}

// With synchronous_commit=local a grant does not wait for the standbys, whatever the server is set up for.
func TestTokens_OfARoleThatCommitsLocally_AreWarnedOf(t *testing.T) {
	for commit, level := range map[string]driver.Level{"on": driver.LevelOK, "local": driver.LevelWarn} {
		f := judgeTokens(facts{fsync: true, replicates: true, standbys: 1, commit: commit})
		if f.Level != level {
			t.Errorf("synchronous_commit=%s: %v, want level %v", commit, f, level)
		}
	}
}
