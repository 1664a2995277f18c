package mysqllock

import (
	"context"
	"database/sql"
	"errors"
	"flag"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/servers"
)

var faultsSeed = flag.Uint64("faults.seed", 0, "replay the faults with this seed (the schedule is the machine's)")

// faultsPatience bounds everything that must happen at some time.
const faultsPatience = 20 * time.Second

// newRand returns a source of random numbers whose seed is in the log.
func newRand(t testing.TB) *rand.Rand {
	t.Helper()
	seed := *faultsSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

// urlOf is the address of a server as users write it.
func urlOf(addr string) string {
	return "mysql://root@" + addr + "/" + servers.MariaDBDatabase
}

// openLocks opens a client as users do. It is closed with the test.
func openLocks(t testing.TB, url string, o *interlock.Options) *interlock.Client {
	t.Helper()
	c, err := interlock.Open(patient(t), url, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() }) // what was not confirmed is the test's own business
	return c
}

// patient returns a context for what is to succeed.
func patient(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), faultsPatience)
	t.Cleanup(cancel)
	return ctx
}

// mustLock locks.
func mustLock(t testing.TB, c *interlock.Client, name string) *interlock.Lease {
	t.Helper()
	l, err := c.Lock(patient(t), name)
	if err != nil {
		t.Fatalf("Lock %q: %v", name, err)
	}
	return l
}

// mustUnlock unlocks.
func mustUnlock(t testing.TB, l *interlock.Lease) {
	t.Helper()
	if err := l.Unlock(patient(t)); err != nil {
		t.Fatalf("Unlock %q: %v", l.Name(), err)
	}
}

// within reports whether something becomes so in time.
func within(limit time.Duration, is func() bool) bool {
	for end := time.Now().Add(limit); time.Now().Before(end); <-time.After(2 * time.Millisecond) {
		if is() {
			return true
		}
	}
	return is()
}

// soon waits until something is so.
func soon(t testing.TB, what string, is func() bool) {
	t.Helper()
	if !within(faultsPatience, is) {
		t.Fatalf("not after %v: %s", faultsPatience, what)
	}
}

// receive waits for a signal.
func receive[T any](t testing.TB, what string, signal <-chan T) T {
	t.Helper()
	select {
	case v := <-signal:
		return v
	case <-time.After(faultsPatience):
		t.Fatalf("not after %v: %s", faultsPatience, what)
		panic("not reached")
	}
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

// waits is an Observer that tells of each wait that has begun, and of losses.
type waits struct {
	queued chan string // names; has room for all that a test does
	lost   chan *interlock.LostError
}

func newWaits() *waits {
	return &waits{make(chan string, 4096), make(chan *interlock.LostError, 4096)}
}

func (w *waits) observer() *interlock.Observer {
	return &interlock.Observer{
		Waiting: func(_ context.Context, e interlock.Event) { w.queued <- e.Name },
		Lost: func(e interlock.Event) {
			var lost *interlock.LostError
			if errors.As(e.Err, &lost) {
				w.lost <- lost
			}
		},
	}
}

// inside sees whether two are inside one lock at once, by what their leases say themselves at one instant, and whether
// tokens grow. It needs no luck: who enters looks at who was in before.
type inside struct {
	t    testing.TB
	name string

	mu      sync.Mutex // guards what follows
	last    *interlock.Lease
	token   uint64
	entries int
}

func newInside(t testing.TB, name string) *inside { return &inside{t: t, name: name} }

// enter notes that l is held. Both leases are asked after l's Lock has returned, so if both may be trusted then two are
// in.
func (w *inside) enter(l *interlock.Lease) {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if l.Err() != nil {
		return // it stood still for too long on its way here
	}
	if w.last != nil && w.last.Err() == nil {
		w.t.Errorf("%q: tokens %d and %d are both held", w.name, w.last.Token(), l.Token())
	}
	if l.Token() <= w.token {
		w.t.Errorf("%q: token %d after %d", w.name, l.Token(), w.token)
	}
	w.last, w.token = l, l.Token()
	w.entries++
}

// ourStacks returns the stacks of goroutines of interlock and the client library, by "goroutine N".
func ourStacks() map[string]string {
	buf := make([]byte, 16<<20)
	all := map[string]string{}
	for stack := range strings.SplitSeq(string(buf[:runtime.Stack(buf, true)]), "\n\n") {
		id, _, _ := strings.Cut(stack, " [")
		ours := strings.Contains(stack, "interlock-go/interlock.") || strings.Contains(stack, "/mysqllock.") ||
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
