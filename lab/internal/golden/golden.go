// Package golden compares what a test has made with the file of testdata in which it was reviewed. It is for the tests
// of this module: their files are long stories, of which one line changes at a time.
//
// A test that imports it has the flag -update:
//
//	go test ./lab/internal/search -update
package golden

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// update is registered here and not in each test, because a flag can be registered only once in a binary.
var update = flag.Bool("update", false, "rewrite the golden files")

// Compare fails t unless testdata/name has the content got. With -update it writes the file instead, unless t has
// failed already: what a failed test has made is not worth a review.
//
// It names the first line that differs and no more, since the lines after it often differ only for that one.
func Compare(t *testing.T, name string, got []byte) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update && !t.Failed() {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if n, is, was := firstDifference(got, want); n > 0 {
		t.Errorf("line %d of %s is not what happened; if it should be, run the test with -update:\ngot  %s\nwant %s",
			n, file, is, was)
	}
}

// firstDifference returns the number of the first line that differs, from 1, and that line of both texts; 0 if they are
// equal. A text that has ended has empty lines.
func firstDifference(got, want []byte) (number int, is, was string) {
	if bytes.Equal(got, want) {
		return 0, "", ""
	}
	a, b := strings.Split(string(got), "\n"), strings.Split(string(want), "\n")
	for i := range max(len(a), len(b)) {
		if is, was := lineAt(a, i), lineAt(b, i); is != was {
			return i + 1, is, was
		}
	}
	return max(len(a), len(b)), "", "" // they differ in newlines at the end
}

// lineAt returns a line, or nothing behind the last.
func lineAt(lines []string, i int) string {
	if i < len(lines) {
		return lines[i]
	}
	return ""
}
