package interlock

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// The state machine (core*.go) uses nothing that is declared in the other files, except for the errors. Otherwise it
// could ask an engine, or call a user, under Client.mu; and it could not be read alone.
func TestCore_UsesNothingOfWhatIsAroundIt(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil || len(files) == 0 {
		t.Fatal("no files", err)
	}
	set, core, outside := token.NewFileSet(), []*ast.File{}, map[string]string{}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") || name == "errors.go" {
			continue
		}
		file, err := parser.ParseFile(set, name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(name, "core") {
			core = append(core, file)
			continue
		}
		for name, object := range file.Scope.Objects {
			outside[name] = set.Position(object.Pos()).Filename
		}
	}
	if len(core) < 10 || len(outside) < 100 {
		t.Fatalf("%d files of the core, %d names outside", len(core), len(outside))
	}
	for _, file := range core {
		for _, used := range file.Unresolved { // in its own file
			if where := outside[used.Name]; where != "" {
				t.Errorf("%v uses %s of %s", set.Position(used.Pos()), used.Name, where)
			}
		}
	}
}
