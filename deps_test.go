package interlock_test

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/interlock-go/interlock"

// direction says which packages of ours each package may import beside its own subpackages; "." is the root. Tests may
// import more: an example of the root uses an engine.
var direction = []struct {
	pkg string // with everything below it
	may []string
	why string
}{
	{"driver", nil, "it is the seam: whatever it imported, every engine would carry"},
	{"fence", nil, "it is what a resource imports, which has no lock of its own"},
	{"enginekit", []string{"driver"}, "it is a part of engines, which know no more of ours either"},
	// Before the row of internal: the first that fits counts.
	{
		"internal/shell",
		[]string{"driver", "internal/trust", "internal/waitgraph", "internal/grants", "internal/core"},
		"it works on every engine, and knows none",
	},
	{
		"internal/core",
		[]string{"driver", "internal/trust", "internal/grants"},
		"it calls no engine and no user, and can be read alone",
	},
	{"internal", []string{".", "driver", "fence", "drivertest"}, "models and checks of ours work on every engine"},
	{"memlock", []string{"driver", "fence", "enginekit"}, "an engine knows neither the core nor another engine"},
	{"filelock", []string{"driver", "fence", "enginekit"}, "an engine knows neither the core nor another engine"},
	{
		"drivertest",
		[]string{".", "driver", "fence", "internal/childproc"},
		"engines of third parties run it, without any engine of ours",
	},
	{
		"interlocktest",
		[]string{".", "driver", "fence", "memlock", "drivertest/faulty"},
		"it is memlock with faults, for the tests of users",
	},
	{"locktx", []string{".", "driver", "fence"}, "it works on every engine"},
	{"webguard", nil, "it decides who may reach a handler, whatever the handler does"},
	{"console", []string{".", "driver", "fence", "webguard"}, "it works on every engine"},
	{
		"adapters",
		[]string{".", "driver", "webguard"},
		"they work on every engine; what needs a dependency is a module of its own",
	},
	{
		".",
		[]string{
			"driver",
			"fence/stamp",
			"internal/trust",
			"internal/waitgraph",
			"internal/grants",
			"internal/core",
			"internal/shell",
		},
		"the core knows no engine; a user's program imports the ones that it opens",
	},
}

// listed is what go list tells about a package, or about its test variant.
type listed struct {
	ImportPath string
	ForTest    string
	Standard   bool
	Deps       []string
	Imports    []string
}

// path returns the import path without the mark of a test variant.
func (p *listed) path() string {
	path, _, _ := strings.Cut(p.ImportPath, " ")
	return path
}

// ours reports whether an import path belongs to this module.
func ours(path string) bool { return path == module || strings.HasPrefix(path, module+"/") }

// below reports whether pkg is dir or lies below it; everything lies below the root.
func below(pkg, dir string) bool {
	return dir == "." || pkg == dir || strings.HasPrefix(pkg, dir+"/")
}

// relative returns the path of one of our packages as direction writes it.
func relative(path string) string {
	if path == module {
		return "."
	}
	return strings.TrimPrefix(path, module+"/")
}

func goCommand(t *testing.T, args ...string) []byte {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", args...)
	// Without the workspace and without a proxy: what counts is what this module's own go.mod says.
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=", "GOPROXY=off")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go %s: %v", strings.Join(args, " "), err)
	}
	return out
}

func TestGoMod_RequiresNothing(t *testing.T) {
	var mod struct {
		Require, Replace, Exclude, Tool []json.RawMessage
		Toolchain                       string
	}
	if err := json.Unmarshal(goCommand(t, "mod", "edit", "-json"), &mod); err != nil {
		t.Fatal(err)
	}
	if n := len(mod.Require) + len(mod.Replace) + len(mod.Exclude) + len(mod.Tool); n > 0 || mod.Toolchain != "" {
		t.Errorf("go.mod has %d requirements, replacements, exclusions and tools, and toolchain %q; it must have "+
			"none: every user of any engine would get them. What needs a dependency is a module of its own "+
			"(docs/rationale.md, Modules).",
			n, mod.Toolchain)
	}
}

func TestPackages_ImportOnlyTheStandardLibraryAndWhatTheyMay(t *testing.T) {
	pkgs := list(t)
	std := map[string]bool{"C": true}
	for _, p := range pkgs {
		std[p.path()] = std[p.path()] || p.Standard
	}
	for _, p := range pkgs {
		if p.Standard || !ours(p.path()) || strings.HasSuffix(p.path(), ".test") {
			continue
		}
		for _, imp := range p.Imports {
			imp, _, _ = strings.Cut(imp, " ")
			if !ours(imp) && !std[imp] {
				t.Errorf("%s imports %s: this module, tests included, uses the standard library only, because its "+
					"requirements reach every user (docs/rationale.md, Modules)", p.ImportPath, imp)
			}
		}
		if p.ForTest == "" {
			checkDirection(t, p)
		}
	}
}

func TestRoot_NeverReachesThePackageTesting(t *testing.T) {
	for _, p := range list(t) {
		if p.ImportPath == module && slices.Contains(p.Deps, "testing") {
			t.Error("the root imports testing, itself or through a package: its flags would appear in every program")
		}
	}
}

// net/http and database/sql, which only the guards of package fence need, would be half of what a small program
// compiles, and a quarter of its start.
func TestRoot_ReachesNeitherHTTPNorSQL(t *testing.T) {
	for _, p := range list(t) {
		if p.ImportPath != module {
			continue
		}
		for _, heavy := range []string{"net/http", "database/sql", "net"} {
			if slices.Contains(p.Deps, heavy) {
				t.Errorf("the root imports %s, itself or through a package: every program that takes a lock would "+
					"link it", heavy)
			}
		}
	}
}

// checkDirection compares p's imports with its row of direction.
func checkDirection(t *testing.T, p *listed) {
	t.Helper()
	pkg := relative(p.path())
	for _, row := range direction {
		if !below(pkg, row.pkg) {
			continue
		}
		if row.pkg == "." && pkg != "." {
			t.Errorf("package %s has no row in the table of dependencies; say there what it may import, and why", pkg)
			return
		}
		for _, imp := range p.Imports {
			if !ours(imp) {
				continue
			}
			if imp := relative(imp); !slices.Contains(row.may, imp) && (row.pkg == "." || !below(imp, row.pkg)) {
				t.Errorf("%s imports %s, but of ours it may import only %q: %s", pkg, imp, row.may, row.why)
			}
		}
		return
	}
}

// list returns the packages of the module, their tests and everything that they depend on.
func list(t *testing.T) []*listed {
	t.Helper()
	// With -e an import that no module provides is listed like any other, so that the failure names it and the reason.
	out := goCommand(t, "list", "-e", "-deps", "-test", "-json=ImportPath,ForTest,Standard,Deps,Imports", "./...")
	var pkgs []*listed
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		p := new(listed)
		if err := dec.Decode(p); errors.Is(err, io.EOF) {
			return pkgs
		} else if err != nil {
			t.Fatal(err)
		}
		pkgs = append(pkgs, p)
	}
}
