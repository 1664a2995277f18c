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
func checkSnippets(d *doc, files *tree) (found []problem) {
	for _, b := range d.blocks {
		text := ""
		if want, err := cut(b.source, files); err != nil {
			text = fmt.Sprintf("marker %q: %v", b.source, err)
		} else if b.source != "" && b.code != want {
			text = fmt.Sprintf("the code differs from %s, which says:\n%s", b.source, want)
		} else if b.source == "" && b.lang == "go" && strings.HasPrefix(path.Base(d.path), "README") {
			text = "Go code without a marker; put <!-- code: FILE FUNCTION --> on the line before it"
		}
		if text != "" {
			found = append(found, problem{d.path, b.line, text})
		}
	}
	return found
}

// lineSpan is a part of a marker that names lines, as 9-17.
var lineSpan = regexp.MustCompile(`^(\d+)-(\d+)$`)

// cut returns the code that a marker names, or nothing if there is no marker.
func cut(source string, files *tree) (string, error) {
	name, part, _ := strings.Cut(source, " ")
	text, there := files.texts[name]
	switch span := lineSpan.FindStringSubmatch(part); {
	case source == "":
		return "", nil
	case !there:
		return "", fmt.Errorf("there is no %s", name)
	case part == "":
		return text, nil
	case span != nil:
		first, _ := strconv.Atoi(span[1])
		last, _ := strconv.Atoi(span[2])
		all := slices.Collect(strings.Lines(text))
		if first < 1 || last < first || last > len(all) {
			return "", fmt.Errorf("of %d lines there are no lines %s", len(all), part)
		}
		return strings.Join(all[first-1:last], ""), nil
	case part[0] == '#':
		_, rest, begins := strings.Cut(text, "// docs: "+part[1:]+"\n")
		code, _, ends := strings.Cut(rest, "// docs: end")
		if !begins || !ends {
			return "", fmt.Errorf("no lines between %q and %q", "// docs: "+part[1:], "// docs: end")
		}
		return dedent(code), nil
	}
	return body(name, text, part)
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
		return dedent(code), nil
	}
	return "", fmt.Errorf("%s has no function %s", name, function)
}

// dedent takes the tabs from the lines that all of them begin with, and blank lines from both ends.
func dedent(code string) string {
	lines := strings.Split(strings.TrimRight(strings.TrimLeft(code, "\n"), " \t\n"), "\n")
	depth := -1
	for _, line := range lines {
		if tabs := len(line) - len(strings.TrimLeft(line, "\t")); line != "" && (depth < 0 || tabs < depth) {
			depth = tabs
		}
	}
	for i, line := range lines {
		lines[i] = strings.TrimRight(line[min(max(depth, 0), len(line)):], " \t")
	}
	return strings.Join(lines, "\n") + "\n"
}
