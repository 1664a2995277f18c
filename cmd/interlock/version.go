// interlock version: what this binary is, and which engines are in it. A bug report should have its output.

package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
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
