package main

import (
	"strings"
	"testing"
)

func TestRun_WantsACommentOnEachExportedField(t *testing.T) {
	const modules = "# folder tagged workspace\n. yes yes\nlab no yes\n"
	const bare = "package b\n\n// B is b.\ntype B struct {\n\tA, c int // of a\n\tD int\n}\n"
	for name, tt := range map[string]struct{ path, code, want string }{
		"a field":               {"b/b.go", bare, "b/b.go:6: B.D has no comment"},
		"a method":              {"b.go", "package b\n\ntype B interface {\n\tD()\n}\n", "b.go:4: B.D has no comment"},
		"a comment before":      {"b/b.go", strings.Replace(bare, "\tD", "\t// D is d.\n\tD", 1), ""},
		"a type of its own":     {"b/b.go", strings.Replace(bare, "type B", "type b", 1), ""},
		"a module without tags": {"lab/b/b.go", bare, ""},
		"an internal package":   {"b/internal/b.go", bare, ""},
		"a test":                {"b/b_test.go", bare, ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, out := check(good(map[string]string{"modules.txt": modules, tt.path: tt.code}))
			if tt.want == "" && strings.Contains(out, "has no comment") || !strings.Contains(out, tt.want) {
				t.Errorf("want %q in:\n%s", tt.want, out)
			}
		})
	}
}
