package main

import (
	"fmt"
	"strings"
	"testing"
)

// asked is the page of a fresh reader's questions, with one more row than nine that are in order.
func asked(row string) string {
	text := "# C\n\n| question | first | second |\n|---|---|---|\n"
	for i := range questions - 1 {
		text += fmt.Sprintf("| %d? | [a](a.md) | [end](a.md#the-end) |\n", i)
	}
	return text + row
}

func TestRun_WantsAnswersInTwoClicks(t *testing.T) {
	for name, tt := range map[string]struct{ page, want string }{
		"a heading":      {asked("| ? | [a](a.md) | [end](a.md#the-end) |\n"), ""},
		"one click":      {asked("| ? | [a](a.md) | |\n"), ""},
		"a link":         {asked("| ? | [a](a.md) | [up](../README.md) |\n"), ""},
		"not in index":   {asked("| ? | [b](b.md) | |\n"), "first click b.md: docs/README.md has no"},
		"another anchor": {asked("| ? | [a](a.md#the-end) | |\n"), "first click a.md#the-end"},
		"not in the page": {
			asked("| ? | [a](a.md) | [b](b.md) |\n"), "second click b.md: docs/a.md has neither",
		},
		"three clicks": {
			asked("| ? | [a](a.md) | [end](a.md#the-end) [up](../README.md) |\n"), "more than two clicks",
		},
		"too few": {asked(""), "docs/fresh-reader.md:1: 9 questions with links, want at least 10"},
	} {
		t.Run(name, func(t *testing.T) {
			files := good(map[string]string{
				index: "[a](a.md) [c](c.md) [q](fresh-reader.md)\n", "docs/b.md": "# B\n", "docs/c.md": "[b](b.md)\n",
				questionsPage: tt.page,
			})
			rc, out := check(files)
			if (rc != 0) != (tt.want != "") || !strings.Contains(out, tt.want) {
				t.Errorf("exit %d, want %q in:\n%s", rc, tt.want, out)
			}
		})
	}
}
