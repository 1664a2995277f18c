package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	// The tests run the command with every engine and the web page, with the tag full or without it.
	_ "github.com/interlock-go/interlock/cmd/interlock/internal/webpage/serve"
	_ "github.com/interlock-go/interlock/etcdlock"
	_ "github.com/interlock-go/interlock/mysqllock"
	_ "github.com/interlock-go/interlock/pglock"
	_ "github.com/interlock-go/interlock/redislock"
	_ "github.com/interlock-go/interlock/redislock/redlock"
	_ "github.com/interlock-go/interlock/zklock"
	"github.com/rogpeppe/go-internal/testscript"
)

// goTool runs go in this folder, with the tags that it is given and no others. It returns the words that go prints.
func goTool(t *testing.T, verb, tags string, args ...string) []string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", append([]string{verb, "-tags=" + tags}, args...)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go %s with the tags %q: %v", verb, tags, err)
	}
	return strings.Fields(string(out))
}

// What the light build depends on is what a newcomer's first "go run ./cmd/interlock" compiles, and what starts with
// every job.
func TestBuilds_TheLightOneHasNoClientOfAServer(t *testing.T) {
	t.Parallel()
	const ours = "github.com/interlock-go/interlock"
	may := []string{
		ours, ours + "/cmd/interlock", ours + "/cmd/interlock/internal/webpage", ours + "/console/board",
		ours + "/driver",
		ours + "/enginekit", ours + "/fence/stamp", ours + "/filelock", ours + "/memlock",
		ours + "/internal/core", ours + "/internal/shell", // parts of the root
		ours + "/internal/grants", ours + "/internal/trust", ours + "/internal/waitgraph",
		"github.com/spf13/cobra", "github.com/spf13/pflag", "golang.org/x/sys/unix",
	}
	for _, pkg := range goTool(t, "list", "", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", ".") {
		if !slices.Contains(may, pkg) {
			t.Errorf("the build without tags has %s; what needs it belongs into engines_full.go", pkg)
		}
	}
}

// TestBuilds_TheLightOneHasNoHTTP holds what the light build costs: net/http and crypto/tls would be almost a third
// of what there is to compile.
func TestBuilds_TheLightOneHasNoHTTP(t *testing.T) {
	t.Parallel()
	for _, pkg := range goTool(t, "list", "", "-deps", ".") {
		if pkg == "net/http" || pkg == "crypto/tls" {
			t.Errorf("the build without tags has %s; what needs it belongs into engines_full.go", pkg)
		}
	}
}

func TestBuilds_TheFullOneHasEveryEngineAndThePage(t *testing.T) {
	t.Parallel()
	full := goTool(t, "list", "full", "-f", `{{join .Imports "\n"}}`, ".")
	for _, pkg := range goTool(t, "list", "", "-f", `{{join .TestImports "\n"}}`, ".") {
		linked := strings.HasSuffix(pkg, "lock") || strings.HasSuffix(pkg, "/webpage/serve")
		if linked && strings.HasPrefix(pkg, "github.com/interlock-go/interlock/") && !slices.Contains(full, pkg) {
			t.Errorf("the tests have %s, the build with the tag full does not", pkg)
		}
	}
	if missing := missingSchemes(); len(missing) > 0 {
		t.Errorf("no engine of the full build answers to %v", missing)
	}
}

// TestScripts_OnTheLightBuild runs testdata/light with a command that was built without tags, as go run and go install
// do.
func TestScripts_OnTheLightBuild(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	goTool(t, "build", "", "-buildvcs=false", "-o", filepath.Join(dir, "interlock"), ".")
	testscript.Run(t, scripts("testdata/light", false, func(env *testscript.Env) error {
		env.Setenv("PATH", dir+string(filepath.ListSeparator)+env.Getenv("PATH"))
		return nil
	}))
}
