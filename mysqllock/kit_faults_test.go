package mysqllock

import (
	"database/sql"
	"runtime"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/locktest"
	"github.com/interlock-go/interlock/internal/servers"
)

// faultsPatience bounds everything that must happen at some time.
const faultsPatience = locktest.Patience

// What the tests of faults of several engines have in common.
var (
	newRand    = locktest.Rand
	patient    = locktest.Patient
	mustLock   = locktest.MustLock
	mustUnlock = locktest.MustUnlock
	soon       = locktest.Soon
	openLocks  = locktest.Open
)

// receive waits for a signal.
func receive[T any](t testing.TB, what string, signal <-chan T) T {
	t.Helper()
	return locktest.Receive(t, what, signal)
}

// urlOf is the address of a server as users write it.
func urlOf(addr string) string {
	return "mysql://root@" + addr + "/" + servers.MariaDBDatabase
}

// admin is an operator's access to a server.
type admin struct {
	t  testing.TB
	db *sql.DB
}

// newAdmin connects when it is first needed.
func newAdmin(t testing.TB, n *servers.MariaDBNode) *admin {
	t.Helper()
	db, err := sql.Open("mysql", configOf(n.Addr()).FormatDSN())
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	t.Cleanup(func() { _ = db.Close() })
	return &admin{t, db}
}

func (a *admin) exec(text string) {
	a.t.Helper()
	if _, err := a.db.ExecContext(patient(a.t), text); err != nil {
		a.t.Fatalf("%s: %v", text, err)
	}
}

// ids returns a column of numbers.
func (a *admin) ids(text string) []int64 {
	a.t.Helper()
	rows, err := a.db.QueryContext(patient(a.t), text)
	if err != nil {
		a.t.Fatalf("%s: %v", text, err)
	}
	defer rows.Close()
	var all []int64
	for rows.Next() {
		var id sql.NullInt64
		if err := rows.Scan(&id); err != nil {
			a.t.Fatal(err)
		}
		if id.Valid {
			all = append(all, id.Int64)
		}
	}
	if err := rows.Err(); err != nil {
		a.t.Fatal(err)
	}
	return all
}

// number returns one number, or 0 for NULL and nothing.
func (a *admin) number(text string) int64 {
	a.t.Helper()
	if all := a.ids(text); len(all) > 0 {
		return all[0]
	}
	return 0
}

// holder is the connection that has a lock by the server's word, or 0.
func (a *admin) holder(name string) int64 {
	a.t.Helper()
	return a.number("SELECT IS_USED_LOCK('" + lockName(name) + "')")
}

// lockName is what GET_LOCK is asked for.
func lockName(name string) string {
	return idOf(servers.MariaDBDatabase+".interlock", driver.Key{Kind: driver.KindMutex, Name: name}).lock()
}

// waiting is how many connections wait for locks.
func (a *admin) waiting() int64 {
	a.t.Helper()
	return a.number("SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE STATE = 'User lock'")
}

// connections are those of others.
func (a *admin) connections() []int64 {
	a.t.Helper()
	return a.ids("SELECT ID FROM information_schema.PROCESSLIST WHERE ID <> CONNECTION_ID() AND USER = 'root' AND " +
		"COMMAND <> 'Daemon'")
}

// ourStacks returns the stacks of goroutines of interlock and the client library, by "goroutine N".
func ourStacks() map[string]string {
	buf := make([]byte, 16<<20)
	all := map[string]string{}
	for stack := range strings.SplitSeq(string(buf[:runtime.Stack(buf, true)]), "\n\n") {
		id, _, _ := strings.Cut(stack, " [")
		ours := strings.Contains(stack, "interlock-go/interlock.") ||
			strings.Contains(stack, "interlock-go/interlock/internal/shell.") ||
			strings.Contains(stack, "/mysqllock.") ||
			strings.Contains(stack, "go-sql-driver")
		if ours && !strings.Contains(stack, "testing.tRunner(") && !strings.Contains(stack, "database/sql.") {
			all[id] = stack
		}
	}
	return all
}

// newStacks are those that were not there before.
func newStacks(before map[string]string) (left []string) {
	for id, stack := range ourStacks() {
		if before[id] == "" {
			left = append(left, stack)
		}
	}
	return left
}
