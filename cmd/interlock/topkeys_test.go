package main

import (
	"fmt"
	"strings"
	"testing"
)

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
