package main

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
	"time"
)

// checkPicture wants a picture to be well formed and to contain the words.
func checkPicture(t *testing.T, text []byte, words ...string) {
	t.Helper()
	for d := xml.NewDecoder(bytes.NewReader(text)); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	for _, word := range words {
		if !strings.Contains(string(text), word) {
			t.Errorf("the picture has no %s", word)
		}
	}
}

func TestPicture_IsWellFormed_WithNothingToo(t *testing.T) {
	checkPicture(t, (&record{}).svg())
	begin := time.Unix(1_000_000_000, 0)
	some := panels()
	some[0].lines[0].points = []point{{begin, 1}, {begin.Add(scrapes), 120}, {begin.Add(10 * scrapes), 3}}
	r := &record{from: begin, to: begin.Add(20 * time.Second), panels: some, marks: []mark{{begin, "begins"}}}
	checkPicture(t, r.svg(), "begins", "M200.0", "0 s")
}

// TestBand_HasASpanForEachRunOfPoints: a scrape that failed is a gap.
func TestBand_HasASpanForEachRunOfPoints(t *testing.T) {
	at := func(n int) time.Time { return time.Unix(0, 0).Add(time.Duration(n) * scrapes) }
	var b band
	b.add(series{points: []point{{at(0), 1}, {at(1), 1}, {at(3), 1}}}, "red")
	b.add(series{points: []point{{at(4), 1}}}, "pending")
	want := []span{{at(0), at(2), "red"}, {at(3), at(4), "red"}, {at(4), at(5), "pending"}}
	if len(b.spans) != len(want) {
		t.Fatalf("got %v, want %v", b.spans, want)
	}
	for i, s := range b.spans {
		if s != want[i] {
			t.Errorf("got %v, want %v", s, want[i])
		}
	}
}

func TestNiceAbove_HasAHalfWithFewDigits(t *testing.T) {
	for v, want := range map[float64]float64{1: 2, 2: 2, 3: 4, 5: 6, 37: 40, 101: 120, 120: 120, 130: 160, 900: 1000} {
		if got := niceAbove(v); got != want {
			t.Errorf("above %v: %v, want %v", v, got, want)
		}
	}
}

func TestRawPoint_ReadsWhatPrometheusWrites(t *testing.T) {
	var p rawPoint
	if err := json.Unmarshal([]byte(`[1435781430.781, "1.5"]`), &p); err != nil {
		t.Fatal(err)
	}
	if p.value != 1.5 || p.at.UnixMilli() != 1435781430781 {
		t.Errorf("got %v", p)
	}
	for _, wrong := range []string{`[1, "one"]`, `["1", "1"]`, `{}`} {
		if err := json.Unmarshal([]byte(wrong), &p); err == nil {
			t.Errorf("%s is no point", wrong)
		}
	}
}
