package main

import (
	"strings"
	"testing"
)

func TestStolen_IsAPartOfWhatWasWanted(t *testing.T) {
	before := parseProcessors("cpu  100 0 100 5000 10 0 0 50 0 0")
	after := parseProcessors("cpu  250 0 125 9000 90 0 5 70 0 0") // 180 worked, 20 stolen
	if got := before.stolenUntil(after); !strings.Contains(got, "Steal: 10.0 %") {
		t.Errorf("%q, want 10 %%", got)
	}
}

func TestStolen_OfASystemThatDoesNotTell_IsNotSaid(t *testing.T) {
	for _, text := range []string{
		"", "cpu 1 2 3", "cpu a b c d e f g h", "intr 1 2 3 4 5 6 7 8", "cpu 1 2 3 4 5 6 7 0 0 0",
	} {
		if got := parseProcessors(text).stolenUntil(parseProcessors(text)); got != "" {
			t.Errorf("%q: %q", text, got)
		}
	}
}
