// interlock version, and the URL schemes: those of this build, those of the full one, and words that other programs
// have for them. engine.go refuses a scheme here; help.go lists them. The list is written by hand, because a light
// build cannot ask engines that it does not have. TestBuilds_TheFullOneHasEveryEngineAndThePage compares it.

package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/interlock-go/interlock/driver"
	"github.com/spf13/cobra"
)

// versionObject is what interlock version prints as JSON.
//
// schemes is what a script should look at: it says which URLs this build opens, whatever its version is.
type versionObject struct {
	SchemaVersion int      `json:"schemaVersion"`
	Version       string   `json:"version"`
	Commit        string   `json:"commit,omitempty"`
	Go            string   `json:"go"`
	Platform      string   `json:"platform"`
	Schemes       []string `json:"schemes"`
}

// readVersion asks the binary itself, so that a build from a checkout, by go install and from a release all say the
// truth.
//
// No number is written by the linker's -X: go install would not set it.
func readVersion() versionObject {
	v := versionObject{
		SchemaVersion: schemaVersion, Version: "(devel)", Go: runtime.Version(), Platform: runtime.GOOS + "/" +
			runtime.GOARCH,
		Schemes: driver.DefaultMux.Schemes(),
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	// Of go install it is the tag; of a checkout it is (devel) or a pseudo-version, by the version of Go.
	if info.Main.Version != "" {
		v.Version = info.Main.Version
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			v.Commit = s.Value
		}
	}
	return v
}

// versionCommand describes version. "interlock --version" is cobra's and prints the number alone.
func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version and the engines of this build",
		Args:  noArgs,
		RunE: func(*cobra.Command, []string) error {
			v := readVersion()
			if a.output == asJSON {
				return a.printJSON(v)
			}
			// Where the build has recorded no version, it stays "(devel)".
			_, err := fmt.Fprintf(a.stdout, "interlock %s (%s, %s)\nURL schemes: %s\n%s", v.Version, v.Go, v.Platform,
				strings.Join(v.Schemes, ", "), aboutMissing())
			return err
		},
	}
}

// howToGetAll is the line that installs the command with every engine.
const howToGetAll = "go install -tags full github.com/interlock-go/interlock/cmd/interlock@latest"

// fullSchemes are the URL schemes of engines_full.go, in the order of the help.
var fullSchemes = []string{
	"redis", "rediss", "redis+sentinel", "redis+cluster", "redlock", "zk", "etcd", "mysql", "postgres",
}

// ourWords are the schemes of engines that other programs name in another way.
var ourWords = map[string]string{
	"zookeeper": "zk", "mariadb": "mysql", "postgresql": "postgres", "valkey": "redis", "valkeys": "rediss",
}

// onlyFull says that this build lacks something, and how to get it. The line is complete, so that it can be copied: the
// same program under the same name, with another tag (docs/rationale.md, Light and full).
func onlyFull(what string) string {
	return "this light build has no " + what + ", the full command does: " + howToGetAll
}

// missingSchemes are those of the full command that this build does not have. What is registered counts, and not the
// build tag: the tests link every engine without it.
func missingSchemes() []string {
	known := driver.DefaultMux.Schemes()
	return slices.DeleteFunc(slices.Clone(fullSchemes), func(s string) bool { return slices.Contains(known, s) })
}

// schemeError refuses a scheme that no engine of this build has. It says how interlock names it, and how to get the
// engine.
func schemeError(scheme string) error {
	hint, ours := "", scheme
	if word, ok := ourWords[scheme]; ok {
		hint, ours = "; write "+word+"://", word
	}
	// The light build knows the names of the others, so that it does not look like a typing error.
	if slices.Contains(missingSchemes(), ours) {
		hint += "; " + onlyFull("engine for "+ours+"://")
	}
	return usage("no engine answers to %s:// URLs; this command knows %s%s", scheme,
		strings.Join(driver.DefaultMux.Schemes(), ", "), hint)
}

// aboutMissing says which engines this build does not have, and how to get them; nothing if it has all.
func aboutMissing() string {
	missing := missingSchemes()
	if len(missing) == 0 {
		return ""
	}
	return "Not in this build: " + strings.Join(missing, ", ") + "\nThe command with every engine:\n  " + howToGetAll +
		"\n"
}
