package driver

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestCutLabel_DoesNotCutCharacters(t *testing.T) {
	for _, s := range []string{
		"", "short", strings.Repeat("a", 255), strings.Repeat("a", 300), strings.Repeat("锁", 100),
		strings.Repeat("\xbf", 300),
	} {
		for _, most := range []int{-1, 0, 1, 254, MaxLabel} {
			got := CutLabel(s, most)
			switch {
			case len(got) > max(most, 0) || !strings.HasPrefix(s, got):
				t.Errorf("%q is cut to %q, which are more than %d bytes", s, got, most)
			case utf8.ValidString(s) && (!utf8.ValidString(got) || len(got) < min(len(s), most-utf8.UTFMax+1)):
				t.Errorf("%q is cut to %q within %d bytes", s, got, most)
			}
		}
	}
}
