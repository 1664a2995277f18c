package golden

import "testing"

func TestFirstDifference_IsALineThatTheReaderCanFind(t *testing.T) {
	for name, row := range map[string]struct {
		got, want string
		number    int
		is, was   string
	}{
		"equal":              {"a\nb\n", "a\nb\n", 0, "", ""},
		"a line that is new": {"a\nx\nb\n", "a\nb\n", 2, "x", "b"},
		"the last one":       {"a\nb", "a\nc", 2, "b", "c"},
		"nothing was made":   {"", "a\n", 1, "", "a"},
		"one newline more":   {"a\n\n", "a\n", 3, "", ""},
	} {
		number, is, was := firstDifference([]byte(row.got), []byte(row.want))
		if number != row.number || is != row.is || was != row.was {
			t.Errorf("%s: line %d, %q and %q; want line %d, %q and %q", name, number, is, was, row.number, row.is,
				row.was)
		}
	}
}

func TestCompare_AcceptsWhatWasReviewed(t *testing.T) {
	Compare(t, "reviewed.golden", []byte("one line\n"))
}
