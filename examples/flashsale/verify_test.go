package main

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/examples/internal/command"
)

// testVerify is why a violation would be noticed: each is made, and must be found under its name.
func testVerify(t *testing.T, w *town, q string) {
	exec := func(s *scene, text string, args ...any) {
		t.Helper()
		if _, err := s.office.ledger.db.ExecContext(t.Context(), text, args...); err != nil {
			t.Fatal(err)
		}
	}
	redis := func(s *scene, command, key string, args ...string) {
		t.Helper()
		line := s.office.redis.B().Arbitrary(command).Keys(s.office.stock.key(key)).Args(args...).Build()
		if err := s.office.redis.Do(t.Context(), line).Error(); err != nil {
			t.Fatal(err)
		}
	}
	tests := map[string]func(s *scene){
		"I1": func(s *scene) { exec(s, "UPDATE orders SET quantity = 9 WHERE item = ? AND request = 'a'", s.Item) },
		"I2": func(s *scene) { redis(s, "HINCRBY", "sale", "left", "1") },
		"I3": func(s *scene) { exec(s, "DELETE FROM orders WHERE item = ? AND request = 'a'", s.Item) },
		"I4": func(s *scene) { exec(s, "UPDATE orders SET user = 'one' WHERE item = ?", s.Item) },
		"I5": func(s *scene) { redis(s, "HSET", "reservations", "x", "RESERVED|x|0|") },
		"I6": func(s *scene) { exec(s, "UPDATE sales SET number = number + 1 WHERE item = ?", s.Item) },
	}
	for name, violate := range tests {
		s := w.open(t, q, usual)
		s.order("a", "b", "c")
		s.settle(3)
		violate(s)
		r := s.verify()
		found := ""
		for _, f := range r.Found {
			if f.Wrong != nil {
				found += f.Name + " "
			}
		}
		if r.exitCode() != verifyWrong || !strings.Contains(found, name) {
			t.Errorf("%s was violated, and verify finds %q and ends with %d", name, found, r.exitCode())
		}
	}
}

// testVerifyCommand: it says what it finds, and when it cannot tell.
func testVerifyCommand(t *testing.T, w *town) {
	s := w.open(t, "stream", usual)
	s.order("a")
	args := []string{"verify", "-item", s.Item, "-redis", s.Redis, "-mariadb", s.MariaDB}
	check := func(want int, says string, more ...string) {
		t.Helper()
		var out, words bytes.Buffer
		code := run(t.Context(), append(args, more...), &out, &words)
		if code != want || !strings.Contains(out.String()+words.String(), says) {
			t.Errorf("exit code %d, %s %s; want %d and %q", code, &out, &words, want, says)
		}
	}
	check(verifyUnknown, "under way")
	s.settle(1)
	check(verifyFine, "agree")
	check(verifyFine, `"Sold":1`, "-json")
	args[2] = "nosuch"
	check(verifyUnknown, "nosuch")
	args = []string{"verify"}
	check(command.Usage, "-redis")
}

func TestRun_RefusesWhatItCannotDo(t *testing.T) {
	for _, args := range [][]string{
		{"-queue", "pigeons"}, {"-rate", "0"}, {"-limit", "0"}, {"check"}, {"-consumers", "0"},
	} {
		var out, words bytes.Buffer
		if code := run(t.Context(), args, &out, &words); code != command.Usage || words.Len() == 0 {
			t.Errorf("%q: exit code %d, words %q; want %d and what is wrong", args, code, &words, command.Usage)
		}
	}
}

func TestPercentile(t *testing.T) {
	var took []time.Duration
	for i := range 100 {
		took = append(took, time.Duration(100-i)*time.Millisecond)
	}
	got := fmt.Sprint(percentile(took, 0.5), percentile(took, 0.99), percentile(took, 1), percentile(nil, 0.5))
	if got != "51ms 100ms 100ms 0s" {
		t.Errorf("p50, p99, the slowest and that of nothing are %s", got)
	}
}
