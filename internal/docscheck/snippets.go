package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// checkSnippets reports code blocks that are not the code that their marker names. A marker is a comment on the line
// before the block, its path relative to the root of the repository:
//
//	<!-- code: example_test.go ExampleClient_Do -->    the body of a function, without its "Output:" comment
//	<!-- code: example_test.go #open -->               the lines between "// docs: open" and "// docs: end"
//	<!-- code: modules.txt -->                         the whole file
//	<!-- code: testdata/D4.en.golden 9-17 -->          these lines of it
//
// Every Go block of the two READMEs must have one: code that nobody compiles is wrong sooner or later.
func checkSnippets(docs map[string]*doc, files *tree) []problem {
	var found []problem
	for _, name := range files.paths() {
		d := docs[name]
		if d == nil {
			continue
		}
		for _, b := range d.blocks {
			if text := wrongSnippet(d, b, files); text != "" {
				found = append(found, problem{name, b.line, text})
			}
		}
	}
	return found
}

// wrongSnippet says what is wrong with a block, or nothing.
func wrongSnippet(d *doc, b block, files *tree) string {
	if b.source == "" {
		if b.lang == "go" && strings.HasPrefix(path.Base(d.path), "README") {
			return "Go code without a marker; put <!-- code: FILE FUNCTION --> on the line before it"
		}
		return ""
	}
	want, err := cut(b.source, files)
	if err != nil {
		return fmt.Sprintf("marker %q: %v", b.source, err)
	}
	if b.code != want {
		return fmt.Sprintf("the code differs from %s, which says:\n%s", b.source, want)
	}
	return ""
}

// cut returns the code that a marker names.
func cut(source string, files *tree) (string, error) {
	name, part, _ := strings.Cut(source, " ")
	part = strings.TrimSpace(part)
	text, ok := files.texts[name]
	switch {
	case !ok:
		return "", fmt.Errorf("there is no %s", name)
	case part == "":
		return text, nil
	case strings.HasPrefix(part, "#"):
		return region(text, part[1:])
	case lineSpan.MatchString(part):
		return span(text, part)
	}
	return body(name, text, part)
}

var lineSpan = regexp.MustCompile(`^(\d+)-(\d+)$`)

// span returns the lines from the first number of part to the second, as in 9-17.
func span(text, part string) (string, error) {
	m := lineSpan.FindStringSubmatch(part)
	first, _ := strconv.Atoi(m[1])
	last, _ := strconv.Atoi(m[2])
	all := slices.Collect(strings.Lines(text))
	if first < 1 || last < first || last > len(all) {
		return "", fmt.Errorf("of %d lines there are no lines %s", len(all), part)
	}
	return strings.Join(all[first-1:last], ""), nil
}

// region returns the lines between two comments.
func region(text, name string) (string, error) {
	var b []string
	inside, ended := false, false
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		switch comment := strings.TrimSpace(line); {
		case comment == "// docs: "+name:
			inside = true
		case inside && comment == "// docs: end":
			inside, ended = false, true
		case inside:
			b = append(b, line)
		}
	}
	if !ended {
		return "", fmt.Errorf("no lines between %q and %q", "// docs: "+name, "// docs: end")
	}
	return dedent(b), nil
}

var outputComment = regexp.MustCompile(`(?mi)^\s*//\s*(unordered )?output:`)

// linterComment stands after the brace with which a function begins. It is for a linter, not for readers.
var linterComment = regexp.MustCompile(`^[ \t]*//nolint:[^\n]*\n`)

// body returns the statements of a function.
func body(name, text, function string) (string, error) {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, name, text, 0)
	if err != nil {
		return "", err
	}
	for _, decl := range file.Decls {
		f, ok := decl.(*ast.FuncDecl)
		if !ok || f.Name.Name != function || f.Body == nil {
			continue
		}
		code := text[fset.Position(f.Body.Lbrace).Offset+1 : fset.Position(f.Body.Rbrace).Offset]
		code = linterComment.ReplaceAllString(code, "")
		if at := outputComment.FindStringIndex(code); at != nil {
			code = code[:at[0]]
		}
		return dedent(strings.Split(strings.Trim(code, "\n"), "\n")), nil
	}
	return "", fmt.Errorf("%s has no function %s", name, function)
}

// dedent takes the tabs from the lines that all of them begin with, and blank lines from both ends.
func dedent(lines []string) string {
	for len(lines) > 0 && strings.TrimSpace(lines[0]) == "" {
		lines = lines[1:]
	}
	for len(lines) > 0 && strings.TrimSpace(lines[len(lines)-1]) == "" {
		lines = lines[:len(lines)-1]
	}
	depth := -1
	for _, line := range lines {
		if tabs := len(line) - len(strings.TrimLeft(line, "\t")); line != "" && (depth < 0 || tabs < depth) {
			depth = tabs
		}
	}
	var b strings.Builder
	for _, line := range lines {
		b.WriteString(strings.TrimRight(line[min(max(depth, 0), len(line)):], " \t") + "\n")
	}
	return b.String()
}
