package mysqllock

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/servers"
)

func TestGalera_IsRefused_AndSaysWhy(t *testing.T) {
	n := servers.MariaDBServer(t, &servers.MariaDBOptions{Galera: true})
	_, err := interlock.Open(patient(t), urlOf(n.Addr()), nil)
	if err == nil || !strings.Contains(err.Error(), "Galera") || !strings.Contains(err.Error(), "lock of one node") {
		t.Errorf("opened in a Galera cluster: %v", err)
	}
}

func TestRefusal_OfServersThatCannotKeepLocks(t *testing.T) {
	for _, row := range []struct {
		settings string
		says     string
	}{
		{"version=10.11.6-MariaDB wsrep_on=OFF wsrep_provider=none binlog_format=MIXED log_bin=ON", ""},
		{"version=10.11.6-MariaDB wsrep_on=ON wsrep_provider=none", ""},
		{"version=10.11.6-MariaDB wsrep_on=ON wsrep_provider=/usr/lib/galera/libgalera_smm.so", "Galera"},
		{"version=8.0.36 wsrep_on=1 wsrep_provider=/usr/lib/libgalera_smm.so", "Galera"},
		{
			"version=8.0.36 group_replication_group_name=x group_replication_single_primary_mode=OFF",
			"several primaries",
		},
		{"version=8.0.36 group_replication_group_name=x group_replication_single_primary_mode=ON", ""},
		{"version=8.4.0 log_bin=ON binlog_format=ROW", ""},
		{"version=5.6.51", "is needed"},
		{"version=5.7.8-log", ""},
		{"version=10.2.44-MariaDB", "is needed"},
		{"version=11.4.2-MariaDB-ubu2404", ""},
		{"version=none", ""},
		{"version=8.0.36 log_bin=ON binlog_format=STATEMENT", "binlog_format"},
		{"version=8.0.36 log_bin=OFF binlog_format=STATEMENT", ""},
	} {
		err := refusal(settingsIn(row.settings))
		if (err == nil) != (row.says == "") || err != nil && !strings.Contains(err.Error(), row.says) {
			t.Errorf("%s: %v, want %q", row.settings, err, row.says)
		}
	}
}

func TestJudge_WarnsOfWeakGuarantees(t *testing.T) {
	for settings, want := range map[string]string{
		"version=10.11.6-MariaDB innodb_flush_log_at_trx_commit=1":                  "",
		"version=10.11.6-MariaDB innodb_flush_log_at_trx_commit=2":                  "tokens warn",
		"version=8.0.36 innodb_flush_log_at_trx_commit=1 log_bin=ON sync_binlog=0":  "tokens warn",
		"version=8.0.36 innodb_flush_log_at_trx_commit=1 log_bin=ON sync_binlog=1":  "",
		"version=8.0.36 read_only=ON":                                               "role fail",
		"version=8.0.36 group_replication_group_name=x super_read_only=ON":          "cluster warn role fail",
		"version=11.8.1-MariaDB read_only=OFF innodb_read_only=OFF super_read_only": "",
	} {
		var bad []string
		for _, f := range judge(settingsIn(settings)) {
			if f.Level != driver.LevelOK {
				bad = append(bad, f.Check, string(f.Level))
				if f.Advice == "" {
					t.Errorf("%s: no advice for %s", settings, f.Check)
				}
			}
		}
		if got := strings.Join(bad, " "); got != want {
			t.Errorf("%s: %q, want %q", settings, got, want)
		}
	}
}

func settingsIn(text string) map[string]string {
	settings := make(map[string]string)
	for pair := range strings.FieldsSeq(text) {
		name, value, _ := strings.Cut(pair, "=")
		settings[name] = value
	}
	return settings
}

func TestDiagnose_OfASoundServer_FindsNothingWrong(t *testing.T) {
	n := sharedServer(t)
	d := open(context.Background(), t, n.Addr(), Options{})
	defer d.Close()
	checks := make(map[string]bool)
	for _, f := range d.Diagnose(patient(t)) {
		checks[f.Check] = true
		if f.Level != driver.LevelOK || f.Detail == "" {
			t.Errorf("%+v", f)
		}
	}
	for _, want := range []string{
		"version", "cluster", "role", "rights", "tokens", "connections", "statements", "waiters",
		"round trip",
	} {
		if !checks[want] {
			t.Errorf("nothing is said about %s", want)
		}
	}
}

func TestDiagnose_SeesTheLeastRoom(t *testing.T) {
	n := servers.MariaDBServer(t, nil)
	a := newAdmin(t, n)
	a.exec("CREATE USER narrow@'%' WITH MAX_USER_CONNECTIONS 5")
	a.exec("GRANT ALL ON *.* TO narrow@'%'")
	config := configOf(n.Addr())
	config.User, config.Passwd = "narrow", ""
	d, err := New(patient(t), config, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	said := func(check string, level driver.Level, says string) {
		t.Helper()
		for _, f := range d.Diagnose(patient(t)) {
			if f.Check == check && (f.Level != level || !strings.Contains(f.Detail+f.Advice, says) || f.Page == "") {
				t.Errorf("%+v, want %s and %q", f, level, says)
			}
		}
	}
	said("connections", driver.LevelWarn, "1 of 5 of the user")
	said("statements", driver.LevelOK, " of 16382 ")
	a.exec("ALTER USER narrow@'%' WITH MAX_USER_CONNECTIONS 40")
	a.exec("SET GLOBAL max_prepared_stmt_count = 1")
	said("statements", driver.LevelWarn, "of 1 prepared")
	other, err := New(patient(t), config, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	d = other // the limit of a session is that of its start
	said("connections", driver.LevelOK, "2 of 40 of the user")
	a.exec("SET GLOBAL max_connections = 10")
	said("connections", driver.LevelWarn, "raise max_connections, or")
}

func TestDiagnose_OfAServerThatDoesNotAnswer(t *testing.T) {
	d := open(context.Background(), t, sharedServer(t).Addr(), Options{})
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if f := d.Diagnose(patient(t)); len(f) != 1 || f[0].Level != driver.LevelFail {
		t.Errorf("after Close: %+v", f)
	}
}

// wantRights wants the doctor, the log of a start and a start that may be refused to judge the rights of the user plain
// so.
func wantRights(t *testing.T, addr string, level driver.Level, says string) {
	t.Helper()
	config := configOf(addr)
	config.User = "plain"
	var log strings.Builder
	d, err := New(patient(t), config, &Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	for _, f := range d.Diagnose(patient(t)) {
		if f.Check == "rights" && (f.Level != level || !strings.Contains(f.Detail, says)) {
			t.Errorf("the doctor says %+v, want %s with %q", f, level, says)
		}
	}
	if strings.Contains(log.String(), "check=rights") != (level != driver.LevelOK) {
		t.Errorf("with rights that are %s the log of the start says\n%s", level, &log)
	}
	refused, err := New(patient(t), config, &Options{Check: CheckRefuse})
	if err == nil {
		_ = refused.Close()
	}
	if (err != nil) != (level == driver.LevelFail) || err != nil && !strings.Contains(err.Error(), says) {
		t.Errorf("with rights that are %s, who wants to be refused is told %v", level, err)
	}
}

// The rights in the package documentation are enough, and each of them is needed.
func TestRights_AreThoseOfTheDocumentation(t *testing.T) {
	n := sharedServer(t)
	a := newAdmin(t, n)
	openLocks(t, urlOf(n.Addr()), nil) // makes the tables
	const db = servers.MariaDBDatabase
	rights := []string{
		"SELECT, INSERT, UPDATE, DELETE ON " + db + ".interlock", "SELECT, INSERT, UPDATE, DELETE ON " + db +
			".interlock_breaks",
	}
	a.exec("CREATE USER plain@'%'")
	for _, right := range rights {
		a.exec("GRANT " + right + " TO plain@'%'")
	}
	url := "mysql://plain@" + n.Addr() + "/" + db
	c := openLocks(t, url, nil)
	other := openLocks(t, url, nil)
	l := mustLock(t, c, "rights")
	in := make(chan error, 1)
	go func() { // ends with the wait
		next, err := other.Lock(context.Background(), "rights")
		if err == nil {
			err = next.Unlock(context.Background())
		}
		in <- err
	}()
	for info, err := range c.List(patient(t), "rights") {
		if err != nil || len(info.Holders) != 1 {
			t.Errorf("listed as %+v, %v", info, err)
		}
	}
	if err := other.Break(patient(t), driver.KindMutex, "rights", l.Token()); err != nil {
		t.Error(err)
	}
	if err := receive(t, "the waiter to get in", in); err != nil {
		t.Error(err)
	}
	wantRights(t, n.Addr(), driver.LevelOK, "what locking needs")
	for _, right := range []string{"INSERT", "UPDATE", "DELETE"} {
		a.exec("REVOKE " + right + " ON " + db + ".interlock_breaks FROM plain@'%'")
		wantRights(t, n.Addr(), driver.LevelFail, right)
		a.exec("GRANT " + right + " ON " + db + ".interlock_breaks TO plain@'%'")
	}
	a.exec("REVOKE UPDATE ON " + db + ".interlock FROM plain@'%'")
	_, err := openLocks(t, url, nil).TryLock(patient(t), "rights")
	if !errors.Is(err, interlock.ErrUnavailable) ||
		!strings.Contains(err.Error(), "for the rights that locking needs") {
		t.Errorf("without a right: %v", err)
	}
	if driver.Refusal(err) == nil || strings.Contains(err.Error(), "unknown") ||
		strings.Count(err.Error(), "for the rights that") != 1 {
		t.Errorf("without a right: %v, want a refusal that says once what to do", err)
	}
	if a.holder("rights") != 0 {
		t.Error("a lock whose token could not be written stays with nobody")
	}
}

func TestCheckPolicy_SaysWhatFindingsDo(t *testing.T) {
	n := servers.MariaDBServer(t, &servers.MariaDBOptions{Args: []string{"--innodb-flush-log-at-trx-commit=2"}})
	a := newAdmin(t, n)
	openLocks(t, urlOf(n.Addr()), nil)
	a.exec("SET GLOBAL read_only = 1")
	for _, row := range []struct {
		policy  CheckPolicy
		refused bool
		logs    int
	}{{CheckWarn, false, 2}, {CheckRefuse, true, 2}, {CheckNone, false, 0}} {
		var log strings.Builder
		d, err := New(patient(t), configOf(n.Addr()),
			&Options{Check: row.policy, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		if (err != nil) != row.refused {
			t.Errorf("%+v: %v", row, err)
		}
		if err == nil {
			_ = d.Close()
		}
		if got := strings.Count(log.String(), "check="); got != row.logs {
			t.Errorf("%+v: the log has %d findings:\n%s", row, got, log.String())
		}
	}
}

func TestTables_OfOthersAreRefused(t *testing.T) {
	n := sharedServer(t)
	a := newAdmin(t, n)
	for i, row := range []struct{ definition, says string }{
		{"(x INT)", "belongs to another program or version"},
		{"(x INT) COMMENT 'interlock 2'", "belongs to another program or version"},
		{"(x INT) ENGINE = MyISAM COMMENT 'interlock 1'", "kept by InnoDB"},
	} {
		table := fmt.Sprint("foreign", i)
		a.exec("CREATE TABLE " + servers.MariaDBDatabase + "." + table + " " + row.definition)
		_, err := New(patient(t), configOf(n.Addr()), &Options{Table: table})
		if err == nil || !strings.Contains(err.Error(), row.says) {
			t.Errorf("%s: %v, want %q", row.definition, err, row.says)
		}
	}
}
