package main

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/interlock-go/interlock/console/board"
)

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

// A name that is typed to confirm a break takes the room of the question, and of its mark.
func TestTop_ALongAnswerOnANarrowScreen_DoesNotStandOutByItsColourAlone(t *testing.T) {
	m := pressed(topBoard(), 20, 10)
	m.prompt, m.target = promptBreak, board.Event{Name: "nightly", Client: "host-7", Token: 9}
	for range 25 {
		m.input += "x"
		checkedFrame(t, m)
	}
}

// Whatever is pressed, and however large the screen is: what is drawn fits, and the selected lock is on it.
func TestTop_AnyKeysOnAnyScreen_Fit(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	dice := rand.New(rand.NewPCG(seed, 0))
	keys := []string{
		"j", "k", keyUp, keyDown, keyPageUp, keyPageDown, keyHome, keyEnd, keyEnter, keyEscape, keyBackspace,
		"w", "a", "l", "n", "/", "g", "e", "b", "?", "o", "锁", "\u0301", "1",
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
