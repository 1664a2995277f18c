package main

import (
	"go/scanner"
	"go/token"
	"path"
	"regexp"
	"strings"
)

// unclear is how sentences of this repository used to be built, so that a reader had to read them twice, and what to
// write instead. It is a list of the worst, each of which can be said in other words everywhere.
var unclear = []struct {
	pattern *regexp.Regexp
	instead string
}{
	{regexp.MustCompile(`(?i)\b(for|from|to|by|lets|lets in) who\b`), `the noun: "a waiter", "the client that …"`},
	{regexp.MustCompile(`(?i)\b(of|by|to) whom\b`), `the noun: "the holder that …", "each of which"`},
	{
		regexp.MustCompile(`(?i)\b(those|all|everybody|nobody|somebody) who (wait|ask)s?\b`),
		`"waiters", "every waiter", "no waiter"`,
	},
	{regexp.MustCompile(`[.:] Who (waits|asks|has|comes)\b`), `begin with the noun: "A waiter …"`},
	{regexp.MustCompile(`(?i)\bfor how long\b`), `"how long"`},
	{regexp.MustCompile(`(?i)\b(is|are) to be\b`), `"must be", "will be", or the plain verb`},
	{regexp.MustCompile(`(?i)\bwhat is to\b`), `name the thing: "the work that is left"`},
	{regexp.MustCompile(`(?i)\b(he|his|him)\b`), `"it", "its", or the noun: the owner, the operator, the customer`},
	{regexp.MustCompile(`(?i)\btakes? leave\b`), `"closes", "ends"`},
	{regexp.MustCompile(`(?i)\b(gives?|given) on\b`), `"grants", "granted to another"`},
}

// checkStyle reports unclear sentences in English pages, and in the comments of Go files that are no tests. Decisions
// and the changelog are records, and generated pages quote the names of tests: those stay as they are.
func checkStyle(files *tree) []problem {
	var found []problem
	for _, name := range files.paths() {
		isPage := path.Ext(name) == ".md" && !strings.HasSuffix(name, ".zh-CN.md") && !isRecord(name) &&
			!generatedPage.MatchString(files.texts[name])
		isCode := path.Ext(name) == ".go" && !strings.HasSuffix(name, "_test.go")
		if !isPage && !isCode {
			continue
		}
		text := files.texts[name]
		if isCode {
			text = comments(text)
		}
		n := 0
		for line := range strings.Lines(text) {
			n++
			for _, u := range unclear {
				if m := u.pattern.FindString(line); m != "" {
					found = append(found, problem{name, n, `"` + m + `": write ` + u.instead})
				}
			}
		}
	}
	return found
}

// isRecord reports whether a page says what was decided or changed at some time.
func isRecord(name string) bool {
	return name == "CHANGELOG.md" || strings.HasPrefix(name, "docs/adr/")
}

// comments returns the comments of Go code, each in its line; of the code there are the ends of the lines only.
func comments(code string) string {
	set := token.NewFileSet()
	file := set.AddFile("", set.Base(), len(code))
	var in scanner.Scanner
	in.Init(file, []byte(code), nil, scanner.ScanComments) // what is wrong with the code is no matter here
	var all strings.Builder
	line := 1
	for {
		at, kind, text := in.Scan()
		switch kind {
		case token.EOF:
			return all.String()
		case token.COMMENT:
			first := file.PositionFor(at, false).Line // whatever a line directive says
			all.WriteString(strings.Repeat("\n", first-line) + text + " ")
			line = first + strings.Count(text, "\n")
		}
	}
}
