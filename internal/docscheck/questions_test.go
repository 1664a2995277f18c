package main

import (
	"strings"
	"testing"
)

// asked is the page of a fresh reader's questions, with a row that is in order and another one.
func asked(row string) string {
	return "# C\n\n| question | first | second |\n|---|---|---|\n| ? | [a](a.md) | [end](a.md#the-end) |\n" + row
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
			asked("| ? | [a](a.md) | [end](a.md#the-end) [up](../README.md) |\n"), "second click ../README.md",
		},
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

func TestRun_WantsEachPageFound(t *testing.T) {
	const unfound = "docs/b.md:1: no other page has a link to this one"
	for name, tt := range map[string]struct{ from, want string }{
		"linked by nobody":       {"[x](x.md)", unfound},
		"linked by the index":    {"[x](x.md) [b](b.md#b)", ""},
		"linked by itself alone": {"[x](x.md)", unfound},
	} {
		own := "# B\n"
		if name == "linked by itself alone" {
			own += "\n[b](b.md)\n"
		}
		files := map[string]string{index: tt.from + " [a](a.md)\n", "docs/x.md": "# X\n", "docs/b.md": own}
		rc, out := check(good(files))
		if (rc != 0) != (tt.want != "") || !strings.Contains(out, tt.want) {
			t.Errorf("%s: exit %d, want %q in:\n%s", name, rc, tt.want, out)
		}
	}
}
