package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
)

// checks are what one package of Go tells of its checks of an engine: what interlock doctor prints.
type checks struct {
	// page is where they are explained: a path with an anchor; empty if the packages that import this one say that.
	page    string
	line    map[string]int // of each check, by name
	file    map[string]string
	imports []string
}

// pageStart is what a constant of a page begins with.
const pageStart = "docs/doctor.md#"

// makers are the functions whose first argument is the name of a check.
var makers = map[string]bool{"Fine": true, "Warn": true, "Fail": true, "merge": true}

// checkFindings reports checks that the page of their package has no row for, and rows without a check: a
// finding that nobody can look up is of little use. The names are taken from the code, so a new check is found
// without being listed anywhere.
func checkFindings(docs map[string]*doc, files *tree) (found []problem) {
	packages := checksOf(files, &found)
	rows := map[string][]string{} // explained names, by page
	for _, dir := range slices.Sorted(maps.Keys(packages)) {
		p := packages[dir]
		if p.page == "" {
			taken := func(o *checks) bool { return o.takes(dir) }
			if !slices.ContainsFunc(slices.Collect(maps.Values(packages)), taken) {
				for name, file := range p.file {
					text := fmt.Sprintf("check %q: no constant of its package names a page", name)
					found = append(found, problem{file, p.line[name], text})
				}
			}
			continue
		}
		all := map[string]string{} // the files by check
		maps.Copy(all, p.file)
		lines := maps.Clone(p.line)
		for other, q := range packages {
			if q.page == "" && p.takes(other) {
				maps.Copy(all, q.file)
				maps.Copy(lines, q.line)
			}
		}
		if _, has := rows[p.page]; !has {
			var text string
			if rows[p.page], text = explained(docs, files, p.page); text != "" {
				found = append(found, problem{dir, 1, text})
				continue
			}
		}
		for _, name := range slices.Sorted(maps.Keys(all)) {
			if !slices.Contains(rows[p.page], name) {
				text := fmt.Sprintf("check %q: the table at %s has no row for it", name, p.page)
				found = append(found, problem{all[name], lines[name], text})
			}
		}
		file, _, _ := strings.Cut(p.page, "#")
		for _, name := range rows[p.page] {
			if all[name] == "" {
				text := fmt.Sprintf("%s: there is no check %q", p.page, name)
				found = append(found, problem{file, 1, text})
			}
		}
	}
	return found
}

func (c *checks) takes(dir string) bool {
	return c.page != "" && slices.ContainsFunc(c.imports, func(i string) bool { return strings.HasSuffix(i, "/"+dir) })
}

// explained returns the names in the first column of the table under the heading of a page: those
// that are written as code.
func explained(docs map[string]*doc, files *tree, page string) (names []string, problem string) {
	file, anchor, _ := strings.Cut(page, "#")
	d := docs[file]
	if d == nil {
		return nil, "page " + page + ": there is no " + file
	}
	i := slices.IndexFunc(d.headings, func(h heading) bool { return h.slug == anchor })
	if i < 0 {
		return nil, "page " + page + ": " + file + " has no heading with this anchor"
	}
	end := len(files.texts[file])
	if i+1 < len(d.headings) {
		end = d.headings[i+1].line
	}
	for n, line := range strings.Split(files.texts[file], "\n") {
		cells := strings.Split(line, "|")
		if n+1 > d.headings[i].line && n+1 < end && len(cells) > 2 {
			for _, name := range inlineCode.FindAllString(cells[1], -1) {
				names = append(names, strings.Trim(name, "`"))
			}
		}
	}
	return names, ""
}

// checksOf reads the packages that make findings, by folder. Tests, and the kit for tests, make findings of their own.
func checksOf(files *tree, found *[]problem) map[string]*checks {
	packages := map[string]*checks{}
	for _, name := range files.paths() {
		dir := path.Dir(name)
		if path.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") || inTestdata(name) ||
			strings.HasPrefix(name, "drivertest/") || !strings.Contains(files.texts[name], "interlock/driver\"") &&
			!strings.Contains(files.texts[name], pageStart) || dir == "internal/docscheck" {
			continue
		}
		set := token.NewFileSet()
		parsed, err := parser.ParseFile(set, name, files.texts[name], parser.SkipObjectResolution)
		if err != nil {
			*found = append(*found, problem{name, 1, err.Error()})
			continue
		}
		p := packages[dir]
		if p == nil {
			p = &checks{line: map[string]int{}, file: map[string]string{}}
			packages[dir] = p
		}
		for _, i := range parsed.Imports {
			p.imports = append(p.imports, strings.Trim(i.Path.Value, `"`))
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.BasicLit:
				if text, err := strconv.Unquote(n.Value); err == nil && strings.HasPrefix(text, pageStart) {
					p.page = text
				}
			case *ast.KeyValueExpr:
				if key, ok := n.Key.(*ast.Ident); ok && key.Name == "Check" {
					p.add(set, n.Value, found)
				}
			case *ast.CallExpr:
				if len(n.Args) > 1 && makers[called(n)] {
					p.add(set, n.Args[0], found)
				}
			}
			return true
		})
	}
	maps.DeleteFunc(packages, func(_ string, p *checks) bool { return p.page == "" && len(p.file) == 0 })
	return packages
}

// add takes the name of a check in. It is a literal, so that it can be read here, or the parameter check of a maker.
func (c *checks) add(set *token.FileSet, name ast.Expr, found *[]problem) {
	at := set.Position(name.Pos())
	if i, ok := name.(*ast.Ident); ok && i.Name == "check" {
		return
	}
	text := ""
	if l, ok := name.(*ast.BasicLit); ok {
		text, _ = strconv.Unquote(l.Value)
	}
	if text == "" {
		const want = "write the name of a check as a literal: docscheck looks for its explanation"
		*found = append(*found, problem{at.Filename, at.Line, want})
		return
	}
	if c.file[text] == "" {
		c.file[text], c.line[text] = at.Filename, at.Line
	}
}

// called is the name of the function that is called, of a package of findings or of the same one.
func called(call *ast.CallExpr) string {
	switch f := call.Fun.(type) {
	case *ast.Ident:
		if f.Name == "merge" {
			return f.Name
		}
	case *ast.SelectorExpr:
		if x, ok := f.X.(*ast.Ident); ok && x.Name == "enginekit" {
			return f.Sel.Name
		}
	}
	return ""
}
