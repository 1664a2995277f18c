package main

import (
	"fmt"
	"strings"
	"testing"
)

// contributing has the fresh reader's test with one more row than nine that are in order.
func contributing(row string) string {
	text := "# C\n\n## A fresh reader's test\n\n| question | first | second |\n|---|---|---|\n"
	for i := range questions - 1 {
		text += fmt.Sprintf("| %d? | [a](docs/a.md) | [end](docs/a.md#the-end) |\n", i)
	}
	return text + row + "\n## Next\n\n| x | [y](docs/b.md) |\n"
}

func TestRun_WantsAnswersInTwoClicks(t *testing.T) {
	for name, tt := range map[string]struct{ page, want string }{
		"a heading":      {contributing("| ? | [a](docs/a.md) | [end](docs/a.md#the-end) |\n"), ""},
		"one click":      {contributing("| ? | [a](docs/a.md) | |\n"), ""},
		"a link":         {contributing("| ? | [a](docs/a.md) | [up](README.md) |\n"), ""},
		"not in index":   {contributing("| ? | [b](docs/b.md) | |\n"), "first click docs/b.md: docs/README.md has no"},
		"another anchor": {contributing("| ? | [a](docs/a.md#the-end) | |\n"), "first click docs/a.md#the-end"},
		"not in the page": {
			contributing("| ? | [a](docs/a.md) | [b](docs/b.md) |\n"), "second click docs/b.md: docs/a.md has neither",
		},
		"three clicks": {
			contributing("| ? | [a](docs/a.md) | [end](docs/a.md#the-end) [up](README.md) |\n"), "more than two clicks",
		},
		"too few":    {contributing(""), "CONTRIBUTING.md:3: 9 questions with links, want at least 10"},
		"no heading": {"# C\n", "there is no heading for the fresh reader's test"},
	} {
		t.Run(name, func(t *testing.T) {
			files := good(map[string]string{
				index: "[a](a.md) [c](c.md)\n", "docs/b.md": "# B\n", "docs/c.md": "[b](b.md)\n",
				questionsPage: tt.page,
			})
			rc, out := check(files)
			if (rc != 0) != (tt.want != "") || !strings.Contains(out, tt.want) {
				t.Errorf("exit %d, want %q in:\n%s", rc, tt.want, out)
			}
		})
	}
}
