package interlock

import (
	"context"
	"errors"
	"fmt"
	"go/token"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/core"
)

// minutes keeps all events that an Observer is told, by function.
type minutes struct {
	mu   sync.Mutex
	all  map[string][]Event
	last []string // the functions in order
}

// observer returns an Observer with every function set.
func (m *minutes) observer() *Observer {
	o := &Observer{}
	v := reflect.ValueOf(o).Elem()
	for i := range v.NumField() {
		field := v.Type().Field(i)
		if field.Type.Kind() != reflect.Func {
			continue
		}
		v.Field(i).Set(reflect.MakeFunc(field.Type, func(args []reflect.Value) []reflect.Value {
			m.note(field.Name, args[len(args)-1].Interface().(Event))
			return nil
		}))
	}
	return o
}

func (m *minutes) note(function string, e Event) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.all == nil {
		m.all = make(map[string][]Event)
	}
	m.all[function] = append(m.all[function], e)
	m.last = append(m.last, function)
}

// of returns the events that function was told, once all other goroutines of the bubble are blocked.
func (m *minutes) of(function string) []Event {
	synctest.Wait()
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.all[function])
}

// one returns the event that function was told since the last call of one for it. It fails unless there is exactly one.
func (m *minutes) one(t *testing.T, function string) Event {
	t.Helper()
	events := m.of(function)
	m.mu.Lock()
	delete(m.all, function)
	m.mu.Unlock()
	if len(events) != 1 {
		t.Fatalf("%s was told %d times, want once: %+v", function, len(events), events)
	}
	return events[0]
}

// eventRow is a row of the table in the comment of Event: the fields that are set always, and sometimes.
type eventRow struct{ always, sometimes []string }

// tableOfEvents reads that table from the source.
func tableOfEvents(t *testing.T) map[string]eventRow {
	t.Helper()
	line, table := regexp.MustCompile(`^\t?(\w+)\s+(.*)$`), map[string]eventRow{}
	words := func(s string) []string {
		return strings.FieldsFunc(s, func(r rune) bool { return r == ',' || r == ' ' })
	}
	for spec, comment := range typesIn(t, token.NewFileSet(), ".") {
		if spec.Name.Name != "Event" {
			continue
		}
		for text := range strings.Lines(comment) {
			if !strings.HasPrefix(text, "\t") {
				continue
			}
			parts := line.FindStringSubmatch(strings.TrimRight(text, "\n"))
			always, sometimes, _ := strings.Cut(parts[2], "if so: ")
			table[parts[1]] = eventRow{words(strings.ReplaceAll(always, ";", "")), words(sometimes)}
		}
	}
	return table
}

func TestEvent_HasTheFieldsThatItsCommentSays(t *testing.T) {
	var m minutes
	everything(t, &m)
	table := tableOfEvents(t)
	functions := reflect.TypeFor[Observer]()
	for i := range functions.NumField() {
		f := functions.Field(i)
		if f.Type.Kind() != reflect.Func {
			continue
		}
		r, is := table[f.Name]
		if !is {
			t.Errorf("the table has no row for %s", f.Name)
		}
		delete(table, f.Name)
		checkRow(t, f.Name, r, m.all[f.Name])
	}
	for name := range table {
		t.Errorf("the table has a row for %s, which is no function of Observer", name)
	}
}

// checkRow compares the events of one function with its row.
func checkRow(t *testing.T, function string, r eventRow, events []Event) {
	t.Helper()
	if len(events) == 0 {
		t.Errorf("%s was never told", function)
	}
	fields := reflect.TypeFor[Event]()
	for i := range fields.NumField() {
		if !fields.Field(i).IsExported() {
			continue
		}
		name, set := fields.Field(i).Name, 0
		for _, e := range events {
			if !reflect.ValueOf(e).Field(i).IsZero() {
				set++
			}
		}
		always := slices.Contains(r.always, name) || slices.Contains([]string{"Kind", "Name", "Class", "Engine"}, name)
		sometimes := slices.Contains(r.sometimes, name)
		switch {
		case always && set < len(events):
			t.Errorf("%s: %s is set in %d of %d events, want all", function, name, set, len(events))
		case sometimes && (set == 0 || set == len(events)):
			t.Errorf("%s: %s is set in %d of %d events, want some", function, name, set, len(events))
		case !always && !sometimes && set > 0:
			t.Errorf("%s: %s is set in %d of %d events, want none", function, name, set, len(events))
		}
	}
}

// everything makes every kind of event happen, in virtual time.
func everything(t *testing.T, m *minutes) {
	t.Helper()
	for _, part := range []func(t *testing.T, c *Client, h *hooks){
		waitsAndTries, upgrades, renewals, losses, retentions, settlements, conditions,
	} {
		bubble(t, nil, func(t *testing.T, _ *Client, h *hooks) {
			c := mustNew(t, h, &Options{Observer: m.observer(), LocalHandoffTime: time.Hour, CloseTimeout: second})
			defer c.Close()
			part(t, c, h)
		})
	}
}

// passedOn returns a hold whose owner has waited, and got it from another owner of the same process.
func passedOn(t *testing.T, c *Client, name string) *Lease {
	t.Helper()
	first := mustLock(t, t.Context(), c, name)
	next := lockLater(t.Context(), c, name)
	synctest.Wait()
	time.Sleep(second)
	mustUnlock(t, first)
	return woken(t, "who waits", next)
}

// timesOut calls acquire with a context that ends soon, and fails unless it returns the context's error.
func timesOut(t *testing.T, ctx context.Context, acquire func(ctx context.Context) error) {
	t.Helper()
	short, cancel := context.WithTimeout(ctx, second)
	defer cancel()
	if err := acquire(short); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}

func waitsAndTries(t *testing.T, c *Client, _ *hooks) {
	l := passedOn(t, c, "a")
	if _, err := c.TryLock(t.Context(), "a"); !errors.Is(err, ErrHeld) {
		t.Error(err)
	}
	timesOut(t, WithOwner(t.Context(), "me"), func(ctx context.Context) error { return errOf(c.Lock(ctx, "a")) })
	time.Sleep(second)
	mustUnlock(t, l)
}

func upgrades(t *testing.T, c *Client, h *hooks) {
	m, other := c.RWMutex("a", nil), peer(t, h, nil).RWMutex("a", nil)
	l := must(t)(m.UpgradeableRLock(t.Context()))
	time.Sleep(second)
	if err := errors.Join(l.Upgrade(t.Context()), l.Downgrade(t.Context())); err != nil {
		t.Error(err)
	}
	read := must(t)(other.RLock(t.Context()))
	timesOut(t, t.Context(), l.Upgrade)
	upgraded := make(chan error, 1)
	go func() { upgraded <- l.Upgrade(t.Context()) }()
	synctest.Wait()
	time.Sleep(second)
	mustUnlock(t, read)
	if err := <-upgraded; err != nil {
		t.Error(err)
	}
	mustUnlock(t, l)
}

// failAll answers every renewal of the batch with "connection refused".
func failAll(_ context.Context, batch []driver.Renewal, done func(int, error)) {
	for i := range batch {
		done(i, errors.New("connection refused"))
	}
}

func renewals(t *testing.T, c *Client, h *hooks) {
	mustLock(t, t.Context(), c, "a")
	passedOn(t, c, "b")
	time.Sleep(defaultLease)
	on(h, &h.renew, failAll)
	time.Sleep(defaultLease * 5 / 6)
	on(h, &h.renew, h.Driver.Renew)
	time.Sleep(defaultLease)
}

func losses(t *testing.T, c *Client, h *hooks) {
	l, other := mustLock(t, t.Context(), c, "a"), passedOn(t, c, "b")
	on(h, &h.renew, noRenewals)
	<-l.Lost()
	<-other.Lost()
}

func retentions(t *testing.T, c *Client, h *hooks) {
	m := c.Mutex("a", &LockOptions{Retain: time.Hour})
	take := func() *Lease { return must(t)(m.Lock(t.Context())) }
	first := take()
	time.Sleep(second)
	mustUnlock(t, first)
	again := take() // takes the retained lock over
	next := later(func() (*Lease, error) { return m.Lock(t.Context()) })
	synctest.Wait()
	time.Sleep(time.Second)
	mustUnlock(t, again)
	third := woken(t, "who waits", next)
	time.Sleep(time.Second)
	mustUnlock(t, third)
	other := peer(t, h, nil)
	mustUnlock(t, mustLock(t, t.Context(), other, "a")) // recalls the retained lock
	third = take()
	time.Sleep(time.Second)
	asks := lockLater(t.Context(), other, "a")
	time.Sleep(time.Second) // and what is held
	mustUnlock(t, third)
	mustUnlock(t, woken(t, "who waits", asks))
}

func settlements(t *testing.T, c *Client, h *hooks) {
	on(h, &h.acquire, func(ctx context.Context, r *driver.Request) (driver.Grant, error) {
		return driver.Grant{}, errors.New("connection reset")
	})
	if _, err := c.Lock(t.Context(), "undone"); !errors.Is(err, ErrUnavailable) {
		t.Error(err)
	}
	on(h, &h.acquire, h.Driver.Acquire)
	mustLock(t, t.Context(), c, "given back by Close") // before the engine hangs for ever
	l := mustLock(t, t.Context(), c, "unconfirmed")
	time.Sleep(second)
	on(h, &h.release, h.hung)
	timesOut(t, t.Context(), l.Unlock)
	if err := c.Close(); err == nil {
		t.Error("Close has confirmed what the engine has not")
	}
}

func conditions(t *testing.T, c *Client, _ *hooks) {
	first := mustLock(t, t.Context(), c, "a")
	time.Sleep(second)
	out := waitLater(t.Context(), c, first)
	time.Sleep(second)
	mustSignal(t, c)
	l := woken(t, "who waits for the condition", out)
	time.Sleep(second)
	mustUnlock(t, l)
}

func TestEvent_SaysInOneWordHowACallEnded(t *testing.T) {
	for want, err := range map[Result]error{
		ResultAcquired:    nil,
		ResultHeld:        &HeldError{},
		ResultCanceled:    &HeldError{Cause: context.DeadlineExceeded},
		ResultUnavailable: &UnavailableError{Err: context.Canceled},
		ResultRefused:     &RefusedError{Err: errors.New("read-only")},
		ResultLost:        &LostError{Cause: ErrUnavailable},
		ResultReleased:    fmt.Errorf("upgrade: %w", ErrReleased),
		ResultDeadlock:    core.ErrReader,
		ResultConflict:    ErrConflict,
		ResultUnsupported: ErrUnsupported,
		ResultClosed:      ErrClosed,
		ResultInvalid:     errors.New("the name is empty"),
	} {
		if got := (Event{Err: err}).Result(); got != want {
			t.Errorf("%v is %q, want %q", err, got, want)
		}
	}
}
