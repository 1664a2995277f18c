package mysqllock

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/interlock-go/interlock/driver"
)

func TestIdOf_TellsAllLocksApart_InNamesThatGetLockTakes(t *testing.T) {
	seen := make(map[string]string)
	for _, scope := range []string{"db.interlock", "db.other", "db2.interlock"} {
		for _, kind := range []driver.Kind{driver.KindMutex, driver.KindRWMutex} {
			for _, name := range []string{
				"a", "A", "a ", "a\x00", "", strings.Repeat("n", 512),
				strings.Repeat("n", 511) + "m",
			} {
				lock := idOf(scope, driver.Key{Kind: kind, Name: name}).lock()
				what := fmt.Sprintf("%s %s %q", scope, kind, name)
				if other, taken := seen[strings.ToLower(lock)]; taken {
					t.Errorf("%s and %s are one lock", what, other)
				}
				seen[strings.ToLower(lock)] = what
				if len(lock) != 64 {
					t.Errorf("%s: the name has %d characters, and GET_LOCK takes 64", what, len(lock))
				}
			}
		}
	}
}

// Other languages and versions must find the same lock; wire.md has this example.
func TestIdOf_IsAsDocumented(t *testing.T) {
	const want = "il1:c1ac03dcefcd8803a0e68625547b6262d52d44e3daf580458291a2677f31"
	if got := idOf("app.interlock", driver.Key{Kind: driver.KindMutex, Name: "stock:42"}).lock(); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestNote_SurvivesTheList(t *testing.T) {
	r := &driver.Request{
		Key: driver.Key{Kind: driver.KindMutex, Name: "a*/ b\x00'\xff锁"}, Owner: "o", Client: "host:1",
		Label: "*/; DROP TABLE x",
	}
	d := &Driver{opts: Options{Table: "interlock", Slice: 30 * time.Second}, scope: "db.interlock"}
	id := d.idOf(r.Key)
	n, lock, ok := readNote(d.waitText(r, id))
	if !ok || lock != id.lock() || string(n.Name) != r.Name || string(n.Client) != r.Client ||
		string(n.Label) != r.Label || string(n.Owner) != r.Owner {
		t.Errorf("%v: lock %q, note %+v", ok, lock, n)
	}
	for _, text := range []string{
		"", "SELECT 1", "SELECT /*il1 zz*/ GET_LOCK('x', 1)", "SELECT /*il1 7b", "SELECT /*il1 7b7d*/ 1",
		"SELECT /*il1 5b5d*/ GET_LOCK('x', 1)",
	} {
		if n, lock, ok := readNote(text); ok {
			t.Errorf("%q is read as %+v of %q", text, n, lock)
		}
	}
}

func TestNote_IsAsTheLibraryWouldWriteIt(t *testing.T) {
	for _, r := range []*driver.Request{
		{Key: driver.Key{Kind: driver.KindMutex, Name: ""}},
		{Key: driver.Key{Kind: driver.KindMutex, Name: "stock:42"}, Client: "host:1"},
		{
			Key: driver.Key{Kind: driver.KindMutex, Name: "\x00\"锁\xff"}, Owner: "o\"",
			Client: strings.Repeat("c", 300),
			Label:  "l",
		},
	} {
		want, err := json.Marshal(note{
			r.Kind, []byte(r.Name), []byte(clip(r.Owner)), []byte(clip(r.Client)),
			[]byte(clip(r.Label)),
		})
		if got := noteOf(r); err != nil || got != string(want) {
			t.Errorf("%s instead of %s, %v", got, want, err)
		}
	}
}

func FuzzReadNote(f *testing.F) {
	f.Add("SELECT /*il1 7b226b223a226d75746578222c226e223a2259513d3d227d*/ IFNULL(0), GET_LOCK('x', 30)")
	f.Add("/*il1 */GET_LOCK('")
	// it must not panic: other programs' statements are in the list
	f.Fuzz(func(_ *testing.T, text string) { readNote(text) })
}

func TestErrors_AreSorted(t *testing.T) {
	said := func(number uint16) error { return fmt.Errorf("x: %w", &mysql.MySQLError{Number: number}) }
	for _, row := range []struct {
		err                           error
		broken, full, passing, advice bool
	}{
		{err: nil},
		{err: mysql.ErrInvalidConn, broken: true},
		{err: said(errShutdown), broken: true},
		{err: said(errKilled), broken: true},
		{err: said(errIdleMySQL), broken: true},
		{err: said(2013), broken: true},
		{err: said(9001), broken: true},
		{err: said(errTooManyConnections), full: true, advice: true},
		{err: said(errTooManyOfUser), full: true, advice: true},
		{err: said(errDeadlock), passing: true},
		{err: said(errInterrupted), passing: true},
		{err: said(errNoRight), advice: true},
		{err: said(errReadOnlyOption), advice: true},
	} {
		if isBroken(row.err) != row.broken || isFull(row.err) != row.full || isPassing(row.err) != row.passing {
			t.Errorf("%v: broken %v, full %v, passing %v", row.err, isBroken(row.err), isFull(row.err),
				isPassing(row.err))
		}
		if row.err != nil && (advise(row.err).Error() != row.err.Error()) != row.advice {
			t.Errorf("%v: advice %v", row.err, advise(row.err))
		}
	}
}

func TestOptions_AreChecked(t *testing.T) {
	o, err := (&Options{Timeout: 1200 * time.Millisecond}).withDefaults()
	if err != nil || o.Timeout != 2*time.Second || o.Table != "interlock" || o.Shared != 4 || o.Waits != 16 ||
		o.Slice != time.Minute {
		t.Errorf("defaults: %+v, %v", o, err)
	}
	for says, o := range map[string]*Options{
		"the table":              {Table: "Locks"},
		"lower-case letters":     {Table: "x; drop"},
		"timeout must":           {Timeout: -time.Second},
		"shared connections":     {Shared: -1},
		"connections for waits":  {Waits: 5000},
		"the slice":              {Slice: time.Millisecond},
		"unknown check policy":   {Check: 9},
		"session's timeout must": {Timeout: 100 * 24 * time.Hour},
	} {
		if _, err := o.withDefaults(); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%+v: %v, want an error with %q", o, err, says)
		}
	}
}
