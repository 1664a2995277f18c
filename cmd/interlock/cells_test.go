package main

import "testing"

func TestCells_AreThoseOfTheTerminal(t *testing.T) {
	for s, want := range map[string]int{
		"": 0, "nightly": 7, "锁": 2, "库存:42": 7, "ﾛｯｸ": 3, "ロック": 6, "잠금": 4, "é": 1, "e\u0301": 1, "🔒": 2,
		"a\u200bb": 2, "Ünïcode": 7, "ключ": 4,
	} {
		if got := cells(s); got != want {
			t.Errorf("%q: %d cells, want %d", s, got, want)
		}
	}
}

func TestFit_CutsBetweenCharacters(t *testing.T) {
	for _, c := range []struct {
		s    string
		most int
		want string
	}{
		{"nightly", 7, "nightly"},
		{"nightly", 6, "night~"},
		{"nightly", 1, "~"},
		{"nightly", 0, ""},
		{"", 3, ""},
		{"库存锁", 6, "库存锁"},
		{"库存锁", 5, "库存~"},
		{"库存锁", 4, "库~"},
		{"库存锁", 2, "~"},
		{"库存锁", -1, ""},
		{"e\u0301ab", 2, "e\u0301~"},
	} {
		got := fit(c.s, c.most)
		if got != c.want || cells(got) > max(0, c.most) {
			t.Errorf("%q to %d: %q, want %q", c.s, c.most, got, c.want)
		}
	}
	for s, want := range map[string]string{
		pad("锁", 5, false): "锁   ", pad("锁", 5, true): "   锁", pad("锁锁锁", 5, true): "锁锁~",
	} {
		if s != want {
			t.Errorf("%q, want %q", s, want)
		}
	}
}
