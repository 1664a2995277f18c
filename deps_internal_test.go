package interlock_test

import (
	"bufio"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// A program may raise the version of one module alone. So what a module imports of another must be public there. What
// lies below internal may be gone in the next version, and the build of a program that did nothing wrong would break.
func TestReleasedModules_ImportNothingInternalOfAnotherModule(t *testing.T) {
	modules := taggedModules(t)
	if !slices.Contains(modules, "redislock/goredislock") {
		t.Fatalf("modules.txt is not read as it should be: %q", modules)
	}
	for _, dir := range modules {
		if dir == "." {
			continue // its own internal packages are its own; of its engines see below
		}
		for file, imports := range importsBelow(t, dir, modules) {
			for _, imp := range imports {
				if owner := moduleOf(imp, modules); isInternal(imp) && owner != dir {
					t.Errorf("%s imports %s of another module: make it public (enginekit is for what engines share)",
						file, imp)
				}
			}
		}
	}
}

// The engines of the root module keep to it too, because engines elsewhere are written after their model.
func TestEngines_ImportNothingInternal(t *testing.T) {
	for _, dir := range []string{"memlock", "filelock"} {
		files := importsBelow(t, dir, nil)
		if len(files) < 5 {
			t.Fatalf("there are %d files in %s", len(files), dir)
		}
		for file, imports := range files {
			for _, imp := range imports {
				if isInternal(imp) {
					t.Errorf("%s imports %s: an engine imports driver, fence and enginekit, as one elsewhere has to",
						file, imp)
				}
			}
		}
	}
}

// What two engines share is a module, so the table of dependencies (direction) does not have it: it knows what an
// engine knows.
func TestSQLSession_ImportsTheSeamAndTheKitOfEngines_AndTheStandardLibrary(t *testing.T) {
	may := []string{module + "/driver", module + "/enginekit"}
	files := importsBelow(t, "enginekit/sqlsession", nil)
	if len(files) < 5 {
		t.Fatalf("there are %d files in enginekit/sqlsession", len(files))
	}
	for file, imports := range files {
		for _, imp := range imports {
			domain, _, _ := strings.Cut(imp, "/")
			if strings.Contains(domain, ".") && !slices.Contains(may, imp) {
				t.Errorf("%s imports %s, but beside the standard library it may import only %q", file, imp, may)
			}
		}
	}
}

// taggedModules returns the folders of the released modules, from modules.txt.
func taggedModules(t *testing.T) (dirs []string) {
	t.Helper()
	f, err := os.Open("modules.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if words := strings.Fields(lines.Text()); len(words) == 3 && words[1] == "yes" {
			dirs = append(dirs, words[0])
		}
	}
	return dirs
}

// moduleOf returns the folder of the module to which an import path of ours belongs, or "" if it is not ours.
func moduleOf(imp string, modules []string) (owner string) {
	if !ours(imp) {
		return ""
	}
	owner = "."
	for _, dir := range modules {
		if below(relative(imp), dir) && len(dir) > len(owner) {
			owner = dir
		}
	}
	return owner
}

// isInternal reports whether a package of ours lies below a folder internal.
func isInternal(imp string) bool {
	return ours(imp) && slices.Contains(strings.Split(imp, "/"), "internal")
}

// importsBelow returns what the files of a folder import, by file. It leaves out tests, and folders of other modules.
func importsBelow(t *testing.T, dir string, modules []string) map[string][]string {
	t.Helper()
	files := map[string][]string{}
	err := filepath.WalkDir(dir, func(file string, entry fs.DirEntry, err error) error {
		file = filepath.ToSlash(file)
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (path.Base(file) == "testdata" || file != dir && slices.Contains(modules, file)):
			return filepath.SkipDir
		case entry.IsDir() || !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go"):
			return nil
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		files[file] = []string{} // one that imports nothing counts too
		for _, spec := range parsed.Imports {
			imp, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			files[file] = append(files[file], imp)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}
