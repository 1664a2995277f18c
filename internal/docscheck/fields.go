package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"strings"
)

// checkFields reports exported fields, and methods of interfaces, of exported types in tagged modules that have no
// comment. The linter (revive, exported) asks for comments on types, functions and methods, and for none of these.
func checkFields(files *tree) (found []problem) {
	tagged := modulesOf(files)
	for _, name := range files.paths() {
		if path.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") || isHidden(name) ||
			!tagged[moduleOf(name, tagged)] {
			continue
		}
		set := token.NewFileSet()
		parsed, err := parser.ParseFile(set, name, files.texts[name], parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			found = append(found, problem{name, 1, err.Error()})
			continue
		}
		for _, bare := range bareFields(parsed) {
			text := fmt.Sprintf("%s.%s has no comment, in its line or before it", bare.of, bare.id.Name)
			found = append(found, problem{name, set.Position(bare.id.Pos()).Line, text})
		}
	}
	return found
}

// modulesOf returns the folders of modules.txt; true are those that are tagged.
func modulesOf(files *tree) map[string]bool {
	tagged := map[string]bool{}
	for line := range strings.Lines(files.texts["modules.txt"]) {
		if row := strings.Fields(line); len(row) >= 3 && row[0] != "#" {
			tagged[row[0]] = row[1] == "yes"
		}
	}
	return tagged
}

// moduleOf returns the folder of the module that the file is in: the nearest one above it.
func moduleOf(name string, modules map[string]bool) string {
	dir := path.Dir(name)
	for dir != "." {
		if _, is := modules[dir]; is {
			break
		}
		dir = path.Dir(dir)
	}
	return dir
}

// isHidden reports whether no godoc shows the file: commands, tests' data and what nobody else can import.
func isHidden(name string) bool {
	for part := range strings.SplitSeq(path.Dir(name), "/") {
		if part == "internal" || part == "testdata" || part == "cmd" {
			return true
		}
	}
	return false
}

// bareField is a field or a method without a comment, and the type that it belongs to.
type bareField struct {
	of string
	id *ast.Ident
}

// bareFields returns the exported fields and methods of the file's exported types that have no comment.
func bareFields(file *ast.File) (bare []bareField) {
	ast.Inspect(file, func(n ast.Node) bool {
		spec, is := n.(*ast.TypeSpec)
		if !is || !spec.Name.IsExported() {
			return true
		}
		for _, field := range fieldsOf(spec.Type) {
			for _, id := range field.Names {
				if id.IsExported() && field.Doc == nil && field.Comment == nil {
					bare = append(bare, bareField{spec.Name.Name, id})
				}
			}
		}
		return false
	})
	return bare
}

// fieldsOf returns the fields of a struct or the methods of an interface.
func fieldsOf(of ast.Expr) []*ast.Field {
	switch t := of.(type) {
	case *ast.StructType:
		return t.Fields.List
	case *ast.InterfaceType:
		return t.Methods.List
	}
	return nil
}
