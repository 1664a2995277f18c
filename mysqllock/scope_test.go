package mysqllock

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/internal/servers"
)

// A server that does not tell upper from lower case has one database, however it is written, and so one set of locks.
func TestDatabase_OfAServerThatFoldsCase_KeepsOneSetOfLocks(t *testing.T) {
	n := servers.MariaDBServer(t, &servers.MariaDBOptions{Args: []string{"--lower-case-table-names=1"}})
	a := openLocks(t, urlOf(n.Addr()), nil)
	b := openLocks(t, "mysql://root@"+n.Addr()+"/"+strings.ToUpper(servers.MariaDBDatabase), nil)
	l := mustLock(t, a, "x")
	if second, err := b.TryLock(patient(t), "x"); !errors.Is(err, interlock.ErrHeld) {
		t.Errorf("two owners at once: %v, %v", second, err)
	}
	mustUnlock(t, l)
	mustUnlock(t, mustLock(t, b, "x"))
}

// A view is another name for a table, under which its locks would be others.
func TestTable_ThatIsAView_IsRefused(t *testing.T) {
	n := sharedServer(t)
	openLocks(t, urlOf(n.Addr()), nil) // makes the tables
	a := newAdmin(t, n)
	for _, view := range []string{"seen", "seen_breaks"} {
		a.exec("CREATE VIEW " + servers.MariaDBDatabase + "." + view + " AS SELECT * FROM " + servers.MariaDBDatabase +
			"." +
			strings.Replace(view, "seen", "interlock", 1))
	}
	if _, err := New(patient(t), configOf(n.Addr()), &Options{Table: "seen"}); err == nil ||
		!strings.Contains(err.Error(), "belongs to another program") {
		t.Errorf("over a view New says %v", err)
	}
}

// A session that the server puts into another database has other locks, and another table for its tokens.
func TestSession_InAnotherDatabaseThanThoseBefore_IsRefused(t *testing.T) {
	n := servers.MariaDBServer(t, nil)
	a := newAdmin(t, n)
	a.exec("CREATE DATABASE elsewhere")
	a.exec("CREATE USER plain@'%'")
	a.exec("GRANT ALL ON *.* TO plain@'%'")
	a.exec("REVOKE SUPER, CONNECTION ADMIN ON *.* FROM plain@'%'") // who has them is spared init_connect
	config := configOf(n.Addr())
	config.User = "plain"
	d, err := New(patient(t), config, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	a.exec("SET GLOBAL init_connect = 'USE elsewhere'")
	if _, err := (dialect{d}).Dial(context.Background(), true); err == nil ||
		!strings.Contains(err.Error(), "those before in") {
		t.Errorf("a session in another database: %v", err)
	}
}
