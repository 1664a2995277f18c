package main

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// helpPages are the arguments of every help there is, by the name of its golden file. They come from the tree of
// commands: a new command has no golden file until somebody has read its help.
func helpPages() map[string][]string {
	pages := map[string][]string{"help": {"--help"}}
	var add func(above *cobra.Command, name string, path []string)
	add = func(above *cobra.Command, name string, path []string) {
		for _, cmd := range above.Commands() {
			name, path := name+"-"+cmd.Name(), append(slices.Clone(path), cmd.Name())
			pages[name] = append(slices.Clone(path), "--help")
			// Topics have no flags, and the tools' flags are for their own programs.
			if !cmd.Runnable() || cmd.DisableFlagParsing {
				pages[name] = append([]string{"help"}, path...)
			}
			add(cmd, name, path)
		}
	}
	add((&app{}).rootCommand(), "help", nil)
	return pages
}

// Both "interlock run --help" and "interlock help run" print what was reviewed.
func TestHelp_IsAsReviewed(t *testing.T) {
	pages := helpPages()
	for name, args := range pages {
		t.Run(name, func(t *testing.T) {
			got := command(t, nil, args...)
			got.want(t, exitOK, "", "")
			golden := filepath.Join("testdata", name+".golden")
			if *update {
				if err := os.WriteFile(golden, []byte(got.stdout), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if got.stdout != string(want) {
				t.Errorf("the help is not that of %s; to accept it, run the test with -update. It is:\n%s", golden,
					got.stdout)
			}
			asked := append([]string{"help"}, slices.DeleteFunc(slices.Clone(args), func(arg string) bool {
				return arg == "help" || arg == "--help"
			})...)
			if other := command(t, nil, asked...); other.stdout != got.stdout {
				t.Errorf("%q prints something else:\n%s", asked, other.stdout)
			}
		})
	}
	files, err := filepath.Glob(filepath.Join("testdata", "help*.golden"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if _, ok := pages[strings.TrimSuffix(filepath.Base(file), ".golden")]; !ok {
			t.Errorf("%s is the help of no command", file)
		}
	}
}
