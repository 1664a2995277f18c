// Command api writes down what a module exports, one line for each name, field and method, and tells when that is no
// longer what the module exports. So a change of the API is a change of a file, which is reviewed like code.
//
// golang.org/x/exp/apidiff would judge more, but keeps what it compares with as export data: megabytes that nobody can
// review. make release has it (as gorelease) compare with the version before.
//
// usage: api [-update] FOLDER MODULE...
//
// MODULE is the folder of a module. Its file in FOLDER has the same name, with - for each /; interlock.txt is that of
// the root.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintf(os.Stderr, "api: %v\n", err)
		os.Exit(1)
	}
}

func run(args []string, out io.Writer) error {
	flags := flag.NewFlagSet("api", flag.ContinueOnError)
	update := flags.Bool("update", false, "write the files")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() < 2 {
		return errors.New("name a folder for the files, and at least one module")
	}
	changed := 0
	for _, dir := range flags.Args()[1:] {
		lines, err := exported(dir)
		if err != nil {
			return fmt.Errorf("%s: %w", dir, err)
		}
		file := filepath.Join(flags.Arg(0), fileOf(dir))
		switch {
		case len(lines) == 0: // a command
		case *update:
			err = os.WriteFile(file, []byte(strings.Join(lines, "\n")+"\n"), 0o644)
		default:
			changed, err = changed+compare(file, lines, out), nil
		}
		if err != nil {
			return err
		}
	}
	if changed > 0 {
		return fmt.Errorf("the API has changed in %d lines; make gen accepts that", changed)
	}
	return nil
}

// fileOf returns the name of the file of a module.
func fileOf(dir string) string {
	if dir == "." {
		return "interlock.txt"
	}
	return strings.ReplaceAll(filepath.ToSlash(filepath.Clean(dir)), "/", "-") + ".txt"
}

// compare prints what differs from the file, and returns how many lines that are.
func compare(file string, now []string, out io.Writer) (changed int) {
	text, _ := os.ReadFile(file) // if there is none, all is new
	before := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	for _, row := range []struct {
		sign       string
		these, not []string
	}{{"-", before, now}, {"+", now, before}} {
		known := map[string]bool{}
		for _, line := range row.not {
			known[line] = true
		}
		for _, line := range row.these {
			if line != "" && !known[line] {
				changed++
				fmt.Fprintf(out, "%s: %s %s\n", file, row.sign, line)
			}
		}
	}
	return changed
}

// exported returns the lines of the packages that users of the module in dir can import, as they are on Linux.
func exported(dir string) (lines []string, _ error) {
	config := &packages.Config{
		Mode: packages.NeedName | packages.NeedTypes | packages.NeedExportFile,
		Dir:  dir, Env: append(os.Environ(), "GOOS=linux", "GOARCH=amd64"),
	}
	all, err := packages.Load(config, "./...")
	if err != nil {
		return nil, err
	}
	for _, p := range all {
		if len(p.Errors) > 0 {
			return nil, p.Errors[0]
		}
		if p.Name != "main" && !slices.Contains(strings.Split(p.PkgPath, "/"), "internal") {
			lines = append(lines, list(p.Types)...)
		}
	}
	slices.Sort(lines)
	return slices.Compact(lines), nil
}
