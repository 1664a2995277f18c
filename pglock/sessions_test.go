package pglock

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/enginekit/sqlsession"
)

// What is asked of the server about one session may not have it look at all of them: a thousand clients that wait open
// a thousand sessions, and a look at each of them for each is what a herd's drain was spent with.
func TestStatements_AboutOneSession_LookAtThatOneAlone(t *testing.T) {
	n := sharedServer(t)
	table := ownTable()
	for range 5 { // who would be looked at
		newAdmin(t, n)
	}
	d := open(t.Context(), t, n.Addr(), Options{Table: table})
	defer func() { _ = d.Close() }()
	ops := newAdmin(t, n)
	const nobody = "'2000-01-01 00:00:00+00'"
	texts := map[string]string{
		"set up a shared session": setUpText(d.settings(false)),
		"set up one that waits":   setUpText(d.settings(true)),
		"cancel": strings.NewReplacer("$1", strconv.Itoa(int(ops.pg.PID())), "$2",
			nobody).Replace(d.texts[stmtCancel]),
		"terminate": strings.NewReplacer("$1", strconv.Itoa(int(ops.pg.PID())), "$2",
			nobody).Replace(d.texts[stmtTerminate]),
	}
	for what, text := range texts {
		t.Run(what, func(t *testing.T) {
			if most := mostRows(t, newAdmin(t, n), text); most > 1 {
				t.Errorf("the server looked at %d sessions, want the one that is asked about:\n%s", most, text)
			}
		})
	}
}

// looked are the rows that a step of a plan passed on, and those that it left out.
var looked = regexp.MustCompile(`(?:actual rows=|Rows Removed by [A-Za-z ]+: )(\d+)`)

// mostRows runs a statement and tells how many rows a step of its plan has passed on, or left out, at most.
func mostRows(t *testing.T, ops *admin, text string) (most int) {
	t.Helper()
	plan := ops.query("EXPLAIN (ANALYZE, TIMING OFF, COSTS OFF) %s", text)
	found := looked.FindAllStringSubmatch(fmt.Sprint(plan), -1)
	if len(found) == 0 {
		t.Fatalf("there is no number in %v", plan)
	}
	for _, m := range found {
		rows, err := strconv.Atoi(m[1])
		if err != nil {
			t.Fatal(err)
		}
		most = max(most, rows)
	}
	return most
}

// A session that waits has said all that its wait needs when it is given out, so that neither the wait nor the
// hand-over to the next costs a round trip more.
func TestSessionThatWaits_HasPreparedWhatItNeeds(t *testing.T) {
	n := sharedServer(t)
	d := open(t.Context(), t, n.Addr(), Options{Table: ownTable()})
	defer func() { _ = d.Close() }()
	c, err := dialect{d}.Dial(t.Context(), true)
	if err != nil {
		t.Fatal(err)
	}
	s := session(c)
	for _, st := range []statement{stmtNote, stmtLock, stmtUnlock} {
		if !s.prepared[st] {
			t.Errorf("%v is not prepared", st)
		}
	}
	word := make(chan string, 1)
	c.Submit(sqlsession.Job{Dead: func(err error) { word <- err.Error() }, Run: func(*sqlsession.Conn) {
		found, err := s.query("SELECT count(*), current_setting('deadlock_timeout') FROM pg_prepared_statements")
		if err != nil || len(found) != 1 {
			word <- fmt.Sprint(found, err)
			return
		}
		word <- fmt.Sprint(int64Of(found[0][0]), " ", string(found[0][1]))
	}})
	if err := want(<-word, "3 2147483647ms"); err != nil {
		t.Error("prepared statements and the time to the search for deadlocks: ", err)
	}
}

// A role that acts as another (SET ROLE, as programs with changing passwords do) is not shown when its own sessions
// began. A session that it cannot see is not taken for one that has ended: its locks are not free.
func TestBury_ByARoleThatActsAsAnother_OfASessionThatLives_IsNotDone(t *testing.T) {
	n := sharedServer(t)
	table := ownTable()
	_ = open(t.Context(), t, n.Addr(), Options{Table: table}).Close() // makes the tables
	ops := newAdmin(t, n)
	ops.query("CREATE ROLE owning; CREATE ROLE changing LOGIN IN ROLE owning; ALTER ROLE changing SET role = "+
		"'owning'; GRANT SELECT, INSERT, UPDATE, DELETE ON %[1]s, %[1]s_waits, %[1]s_breaks, %[1]s_readers TO owning",
		table)
	config := configOf(t, n.Addr())
	config.User = "changing"
	d, err := New(t.Context(), config, &Options{Table: table})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = d.Close() }()
	lives, err := dialect{d}.Dial(t.Context(), true)
	if err != nil {
		t.Fatal(err)
	}
	buried := func() bool {
		word := make(chan bool, 1)
		d.core.OnShared(sqlsession.Job{
			Run:  func(shared *sqlsession.Conn) { word <- session(shared).Bury(lives) },
			Dead: func(error) { word <- false },
		})
		return <-word
	}
	if buried() {
		t.Error("a session that lives was taken for one that has ended")
	}
	ops.query("SELECT pg_terminate_backend(%d)", session(lives).pid)
	until(t, patience, func() error {
		if !buried() {
			return errors.New("a session that has ended is waited for")
		}
		return nil
	})
}
