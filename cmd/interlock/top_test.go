package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/console/board"
	"github.com/interlock-go/interlock/driver"
)

// topNow is when the golden screens are drawn.
var topNow = time.Date(2026, 11, 21, 2, 10, 15, 0, time.Local)

func ago(d time.Duration) time.Time { return topNow.Add(-d) }

// topBoard has of everything one: a wide name, one that would break a terminal, several holders, a cycle, what is retained, what
// rests, what cannot be read.
func topBoard() *board.Board {
	yes := board.Knowledge{OK: true}
	holder := func(client, owner string, held, left time.Duration, token uint64) board.Holder {
		return board.Holder{Client: client, Owner: owner, Since: ago(held), Until: topNow.Add(left), Token: token, Weight: 1}
	}
	infos := []driver.LockInfo{
		{Kind: interlock.KindMutex, Name: "a\x1b[2Jb\n"},
		{Kind: interlock.KindMutex, Name: "accounts:7"},
		{Kind: interlock.KindMutex, Name: "accounts:9"},
		{Kind: interlock.KindElection, Name: "boss"},
		{Kind: interlock.KindMutex, Name: "cache:warm"},
		{Kind: interlock.KindSemaphore, Name: "convert", Limit: 4},
		{Kind: interlock.KindMutex, Name: "deploy", Unreadable: "written by a later version"},
		{Kind: interlock.KindRWMutex, Name: "index"},
		{Kind: interlock.KindMutex, Name: strings.Repeat("a-very-long-name/", 12)},
		{Kind: interlock.KindMutex, Name: "库存:上海:扣减"},
		{Kind: interlock.KindMutex, Name: "잠금"},
	}
	holders := [][]board.Holder{
		{holder("host-1:100", "o1", time.Second, 29*time.Second, 11)},
		{holder("host-1:101", "alice", 65*time.Second, 20*time.Second, 12)},
		{holder("host-2:102", "bob", 64*time.Second, 21*time.Second, 13)},
		{holder("host-3:103", "o4", 26*time.Hour, 5*time.Second, 14)},
		{{Client: "host-3:103", Since: ago(time.Minute), Until: topNow.Add(time.Minute), Retained: true}},
		{holder("host-1:105", "o5", 3*time.Second, 27*time.Second, 16), holder("host-2:106", "o6", 9*time.Second, 25*time.Second, 17)},
		nil,
		{{Client: "host-4:107", Owner: "r", Shared: true, Since: ago(time.Minute), Until: topNow.Add(time.Second), Token: 18}},
		{{Client: "host-4:108", Owner: "gone", Since: ago(time.Hour), Until: topNow.Add(time.Second), Resting: true, Token: 19}},
		{holder("主机-5:109", "张三", 12*time.Second, 18*time.Second, 20)},
		{},
	}
	holders[1][0].Label = "nightly backup traceparent=00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	waiters := map[string][]board.Waiter{
		"accounts:7": {{Client: "host-2:102", Owner: "bob", Since: ago(10 * time.Second), Position: 1}},
		"accounts:9": {{Client: "host-1:101", Owner: "alice", Since: ago(9 * time.Second), Position: 1}},
		"index":      {{Client: "host-9:1", Owner: "w", Label: "rebuild", Since: ago(3 * time.Second), Position: 1}, {Client: "host-9:2", Owner: "r2", Shared: true, Position: 2}},
		"库存:上海:扣减":   {{Client: "host-6:1", Owner: "李四", Since: ago(2 * time.Second), Position: 1}, {Client: "host-6:2"}, {Client: "host-6:3"}},
		"잠금":         {{Client: "host-7:1", Owner: "o9", Since: ago(time.Second), Position: 1}},
	}
	b := &board.Board{
		SchemaVersion: board.SchemaVersion, Taken: ago(400 * time.Millisecond), Tried: ago(400 * time.Millisecond), TookMs: 3,
		Engine: "redis", URL: "redis://127.0.0.1:6379/0", Knows: board.Knows{List: yes, Waiters: yes, Since: yes, Until: yes, Token: yes, Break: yes},
		Counts: board.Counts{Held: 8, Waiting: 8, Retained: 1, Resting: 1, Unreadable: 1, OldestWaiterMs: 10_000},
		Events: []board.Event{
			{Time: ago(time.Second), Event: board.Held, Kind: interlock.KindMutex, Name: "a\x1b[2Jb\n", Client: "host-1:100", Owner: "o1", Token: 11},
			{Time: ago(4 * time.Second), Event: board.Released, Kind: interlock.KindRWMutex, Name: "index", Client: "host-8:1", Owner: "r0", Why: "the lock stays closed for a while"},
			{Time: ago(24 * time.Hour), Event: board.Ended, Kind: interlock.KindMutex, Name: "库存:上海:扣减", Client: "host-0:1"},
		},
	}
	for i, info := range infos {
		l := board.LockOf(info, true)
		l.Holders, l.Waiters = holders[i], append(l.Waiters, waiters[info.Name]...)
		b.Locks = append(b.Locks, l)
	}
	g := board.WaitsFor(b.Locks)
	b.Edges, b.Cycles = g.Edges, g.Cycles
	return b
}

// pressed is a top of that size after keys.
func pressed(b *board.Board, width, height int, keys ...string) *topModel {
	m := newTopModel(byWaiters, time.Second, true)
	m.width, m.height = width, height
	m.take(b)
	for _, k := range keys {
		m.key(k)
	}
	return m
}

func TestTop_ScreensAreAsReviewed(t *testing.T) {
	t.Parallel()
	changed := func(f func(b *board.Board)) *board.Board {
		b := topBoard()
		f(b)
		return b
	}
	stale := changed(func(b *board.Board) {
		b.Stale, b.Error, b.Taken = true, "list: no answer within 10s\x1b[31m", ago(75*time.Second)
	})
	unknown := changed(func(b *board.Board) {
		b.Engine, b.URL, b.Cycles, b.Edges = "file", "file:///var/lib/locks", nil, nil
		b.Knows.Waiters = board.Knowledge{Why: "the kernel knows that somebody waits, not who"}
		b.Knows.Break = board.Knowledge{Why: "a lock of the kernel cannot be taken from a process"}
		for i := range b.Locks {
			b.Locks[i].Waiters = nil
		}
	})
	for name, m := range map[string]*topModel{
		"locks-80x24":     pressed(topBoard(), 80, 24),
		"locks-132x16":    pressed(topBoard(), 132, 16, "n", "j"),
		"locks-60x10":     pressed(topBoard(), 60, 10, "a", keyEnd),
		"locks-40x12":     pressed(topBoard(), 40, 12, "l"),
		"locks-20x6":      pressed(topBoard(), 20, 6),
		"locks-10x3":      pressed(topBoard(), 10, 3),
		"filter-80x12":    pressed(topBoard(), 80, 12, "/", "库", "存"),
		"filtered-80x12":  pressed(topBoard(), 80, 12, "/", "H", "O", "s", "t", "-", "4", keyEnter),
		"lock-80x24":      pressed(topBoard(), 80, 24, "n", "j", "j", "j", "j", "j", keyEnter, "j"),
		"cycle-80x24":     pressed(topBoard(), 80, 24, "n", "j", keyEnter),
		"wide-50x14":      pressed(topBoard(), 50, 14, "w", keyEnter),
		"graph-80x16":     pressed(topBoard(), 80, 16, "g"),
		"events-80x12":    pressed(topBoard(), 80, 12, "e"),
		"help-80x24":      pressed(topBoard(), 80, 24, "?"),
		"break-80x10":     pressed(topBoard(), 80, 10, "b", "库", "存", "?"),
		"break-30x10":     pressed(topBoard(), 30, 10, "b", "库", "存", "?"),
		"unbroken-80x10":  pressed(topBoard(), 80, 10, "b", "库", "存", "?", keyEnter),
		"stale-80x12":     pressed(stale, 80, 12),
		"file-80x12":      pressed(unknown, 80, 12, "b"),
		"file-lock-80x16": pressed(unknown, 80, 16, keyEnter),
		"empty-80x10":     pressed(&board.Board{}, 80, 10),
	} {
		t.Run(name, func(t *testing.T) {
			var screen strings.Builder
			for _, l := range checkedFrame(t, m) {
				screen.WriteString(l.text + "\n")
			}
			golden(t, filepath.Join("top", name+".golden"), screen.String())
		})
	}
}

// golden compares with a file of testdata, or writes it.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("this is not %s; to accept it, run the test with -update:\n%s", path, got)
	}
}

// checkedFrame is the frame of m, which fits its screen and has no character that a terminal obeys.
func checkedFrame(t *testing.T, m *topModel) []topLine {
	t.Helper()
	lines := m.frame(topNow)
	if len(lines) != max(1, m.height) {
		t.Fatalf("%d lines on a screen of %d", len(lines), m.height)
	}
	for i, l := range lines {
		if n := cells(l.text); n > m.width {
			t.Fatalf("line %d has %d cells on a screen of %d: %q", i, n, m.width, l.text)
		}
		if strings.ContainsFunc(l.text, unicode.IsControl) {
			t.Fatalf("line %d has a control character: %q", i, l.text)
		}
		mark := map[topStyle]string{styleSelected: ">", styleWarning: "!"}[l.style]
		if begin := l.text[:min(2, len(l.text))]; !strings.Contains(begin, mark) {
			t.Fatalf("line %d stands out by its colour alone: %q", i, l.text)
		}
	}
	return lines
}

// Whatever is pressed, and however large the screen is: what is drawn fits, and the selected lock is on it.
func TestTop_AnyKeysOnAnyScreen_Fit(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	dice := rand.New(rand.NewPCG(seed, 0))
	keys := []string{
		"j", "k", keyUp, keyDown, keyPageUp, keyPageDown, keyHome, keyEnd, keyEnter, keyEscape, keyBackspace, "w", "a", "l",
		"n", "/", "g", "e", "b", "?", "o", "锁", "\u0301", "1",
	}
	boards := []*board.Board{topBoard(), {}, manyLocks(300)}
	for range 300 {
		m := pressed(boards[dice.IntN(len(boards))], dice.IntN(140), dice.IntN(40))
		for range 20 {
			m.key(keys[dice.IntN(len(keys))])
			if dice.IntN(5) == 0 {
				m.take(boards[dice.IntN(len(boards))])
			}
			lines := checkedFrame(t, m)
			fits := m.width >= minTopWidth && m.height >= minTopHeight+3
			if m.view == viewLocks && len(m.rows) > 0 && fits && !selectedShown(lines) {
				t.Fatalf("row %d of %d is not shown on %dx%d", m.at, len(m.rows), m.width, m.height)
			}
		}
	}
}

func selectedShown(lines []topLine) bool {
	for _, l := range lines[:len(lines)-1] {
		if l.style == styleSelected {
			return true
		}
	}
	return false
}

func TestTop_KeepsTheSelectedLock_WhenTheOrderChanges(t *testing.T) {
	t.Parallel()
	m := pressed(topBoard(), 80, 24, "n", "j", "j")
	if m.atID != "mutex/accounts:9" {
		t.Fatalf("selected is %q", m.atID)
	}
	b := topBoard()
	b.Locks = b.Locks[2:]
	m.take(b)
	if m.atID != "mutex/accounts:9" || m.at != 0 {
		t.Errorf("selected is %q, row %d", m.atID, m.at)
	}
	b = topBoard()
	b.Locks = b.Locks[:2] // it has gone
	m.take(b)
	if m.at < 0 || m.at > 1 || m.atID != b.Locks[m.at].ID {
		t.Errorf("selected is %q, row %d", m.atID, m.at)
	}
}

func TestTop_BreaksWhatWasAsked_AfterItsNameAlone(t *testing.T) {
	t.Parallel()
	press := func(m *topModel, keys ...string) (got *board.Event) {
		for _, k := range keys {
			if a := m.key(k); a.broken != nil {
				got = a.broken
			}
		}
		return got
	}
	find := []string{"/", "b", "o", "s", "s", keyEnter}
	name := []string{"b", "b", "o", "s", "s"}
	m := pressed(topBoard(), 80, 24, find...)
	if e := press(m, append(name, "x", keyEnter)...); e != nil || !strings.Contains(m.note, "not broken") {
		t.Errorf("the wrong name breaks %v, and it says %q", e, m.note)
	}
	if e := press(m, append(name, keyEscape, keyEnter)...); e != nil {
		t.Errorf("a question that was left breaks %v", e)
	}
	m = pressed(topBoard(), 80, 24, find...)
	press(m, name...)
	m.take(&board.Board{SchemaVersion: 1}) // whatever comes meanwhile
	e := press(m, keyEnter)
	if e == nil || e.Name != "boss" || e.Kind != interlock.KindElection || e.Token != 14 {
		t.Errorf("the right name breaks %+v", e)
	}
	m = pressed(topBoard(), 80, 24, find...)
	m.allowBreak = false
	if e := press(m, append(name, keyEnter)...); e != nil {
		t.Errorf("without --allow-break it breaks %v", e)
	}
	m = pressed(topBoard(), 80, 24, "/", "c", "o", "n", "v", "e", "r", "t", keyEnter)
	if e := press(m, "b"); e != nil || m.prompt != promptNone || !strings.Contains(m.note, "2 holders") {
		t.Errorf("of several holders it breaks %v, %q", e, m.note)
	}
	e = press(m, keyEnter, "j", "b", "c", "o", "n", "v", "e", "r", "t", keyEnter)
	if e == nil || e.Token != 17 {
		t.Errorf("the second holder is %+v", e)
	}
}

func TestKeys_AreParsedHoweverTheyArrive(t *testing.T) {
	t.Parallel()
	const sent = "jé锁\x1b[A\x1bOB\x1b[5~\x1b[1;5C\r\x7f\x01\x1b[B🔒"
	want := []string{"j", "é", "锁", keyUp, keyDown, keyPageUp, keyEnter, keyBackspace, keyDown, "🔒"}
	for size := 1; size <= len(sent); size++ {
		var got []string
		rest := ""
		for at := 0; at < len(sent); at += size {
			var keys []string
			keys, rest = parseKeys(rest+sent[at:min(at+size, len(sent))], false)
			got = append(got, keys...)
		}
		if fmt.Sprint(got) != fmt.Sprint(want) || rest != "" {
			t.Errorf("in pieces of %d: %q, rest %q; want %q", size, got, rest, want)
		}
	}
	if keys, rest := parseKeys("\x1b", false); len(keys) > 0 || rest != "\x1b" {
		t.Errorf("an escape that may go on: %q, %q", keys, rest)
	}
	if keys, rest := parseKeys("\x1b", true); len(keys) != 1 || keys[0] != keyEscape || rest != "" {
		t.Errorf("an escape alone: %q, %q", keys, rest)
	}
}

func FuzzParseKeys(f *testing.F) {
	f.Add("\x1b[A\x1b\x1b[9999999999999999999999999999999999999999~q")
	f.Fuzz(func(t *testing.T, sent string) {
		keys, rest := parseKeys(sent, false)
		if len(rest) > maxSequence || !strings.HasSuffix(sent, rest) {
			t.Errorf("%q leaves %q", sent, rest)
		}
		for _, k := range keys {
			if !isCharacter(k) && len(k) < 2 {
				t.Errorf("%q is no key", k)
			}
		}
		if _, rest := parseKeys(sent, true); rest != "" {
			t.Errorf("the last %q leaves %q", sent, rest)
		}
	})
}

// manyLocks is a board with so many locks, each with a waiter.
func manyLocks(n int) *board.Board {
	b := topBoard()
	b.Locks = nil
	for i := range n {
		l := board.LockOf(driver.LockInfo{Kind: interlock.KindMutex, Name: fmt.Sprintf("stock:%06d", i)}, true)
		l.Holders = []board.Holder{{Client: "host:1", Owner: "o", Since: ago(time.Duration(i) * time.Second), Token: uint64(i + 1)}}
		l.Waiters = []board.Waiter{{Client: "host:2", Owner: "p", Position: 1}}
		b.Locks = append(b.Locks, l)
	}
	return b
}

// BenchmarkTop draws a board of 10,000 locks: again each second, after a key, and after a look that has brought another.
func BenchmarkTop(b *testing.B) {
	many := manyLocks(10_000)
	s := &screen{}
	b.Run("again", func(b *testing.B) {
		m := pressed(many, 120, 50)
		b.ReportAllocs()
		for b.Loop() {
			_ = m.frame(topNow)
		}
	})
	b.Run("key", func(b *testing.B) {
		m := pressed(many, 120, 50)
		b.ReportAllocs()
		for b.Loop() {
			m.key("j")
			for _, l := range m.frame(topNow) {
				_ = s.painted(l)
			}
		}
	})
	b.Run("look", func(b *testing.B) {
		m := pressed(many, 120, 50)
		b.ReportAllocs()
		for b.Loop() {
			m.take(many)
			_ = m.frame(topNow)
		}
	})
	b.Run("filter", func(b *testing.B) {
		m := pressed(many, 120, 50, "/")
		b.ReportAllocs()
		for b.Loop() {
			m.key("9")
			_ = m.frame(topNow)
			m.key(keyBackspace)
		}
	})
}
