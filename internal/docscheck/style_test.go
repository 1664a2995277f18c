package main

import (
	"strings"
	"testing"
)

func TestRun_RefusesSentencesThatHaveToBeReadTwice(t *testing.T) {
	tests := []struct {
		name    string
		changes map[string]string
		want    string
	}{
		{
			"a page",
			map[string]string{"docs/b.md": "# B\n\nIt returns for how long.\n"},
			`docs/b.md:3: "for how long": write "how long"`,
		},
		{"a comment", map[string]string{"b.go": "\n\n// b wakes those who wait.\n"}, `b.go:3: "those who wait"`},
		{"a comment behind code", map[string]string{"b.go": "x := 1 // is to be set\n"}, `b.go:1: "is to be"`},
		{"a long comment", map[string]string{"b.go": "x := 1 /* it\n\tis to be set */\n"}, `b.go:2: "is to be"`},
		{"the next comment", map[string]string{"b.go": "/* a\nb */\n\n// by whom\n"}, `b.go:4: "by whom"`},
		{"a text with two slashes", map[string]string{"b.go": "s := \"a // by whom\"\n"}, ""},
		{"a text of lines", map[string]string{"b.go": "s := `\n// by whom\n`\n"}, ""},
		{"code", map[string]string{"b.go": "s := \"by whom\"\n"}, ""},
		{"a test", map[string]string{"b_test.go": "// by whom\n"}, ""},
		{"a decision", map[string]string{"docs/adr/0001-b.md": "# B\n\nFor how long.\n"}, ""},
		{"a question", map[string]string{"docs/b.md": "# B\n\nIt draws who waits for whom.\n"}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, out := check(good(tt.changes))
			if tt.want == "" && strings.Contains(out, ": write ") || !strings.Contains(out, tt.want) {
				t.Errorf("want %q in:\n%s", tt.want, out)
			}
		})
	}
}
