package interlock

import (
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// go doc shows no fields of an alias. So the comment of each alias must show them.
func TestAliases_OfDriversTypes_ShowTheirFieldsInTheirComments(t *testing.T) {
	files := token.NewFileSet()
	structs := map[string]*ast.StructType{}
	for spec := range typesIn(t, files, "driver") {
		if s, ok := spec.Type.(*ast.StructType); ok {
			structs[spec.Name.Name] = s
		}
	}
	var shown []string
	for spec, comment := range typesIn(t, files, ".") {
		of, is := spec.Type.(*ast.SelectorExpr)
		if !is || !spec.Assign.IsValid() || structs[of.Sel.Name] == nil {
			continue
		}
		shown = append(shown, spec.Name.Name)
		want, got := fieldsOf(t, files, structs[of.Sel.Name]), fieldsShown(t, files, spec.Name.Name, comment)
		if !slices.Equal(got, want) {
			t.Errorf("the comment of %s shows the fields\n%q, and %s.%s has\n%q", spec.Name.Name, got, of.X,
				of.Sel.Name, want)
		}
	}
	slices.Sort(shown)
	if want := []string{"HeldError", "LockInfo", "LostError", "RefusedError", "UnavailableError"}; !slices.Equal(shown,
		want) {
		t.Errorf("the aliases of structs are %q, want %q: mend the list if there is another one now", shown, want)
	}
}

// typesIn yields the exported types of the package in dir, with their comments.
func typesIn(t *testing.T, files *token.FileSet, dir string) func(yield func(*ast.TypeSpec, string) bool) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil || len(names) == 0 {
		t.Fatalf("there are no files in %s: %v", dir, err)
	}
	return func(yield func(*ast.TypeSpec, string) bool) {
		for _, name := range names {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			file, err := parser.ParseFile(files, name, nil, parser.ParseComments)
			if err != nil {
				t.Fatal(err)
			}
			for _, decl := range file.Decls {
				group, ok := decl.(*ast.GenDecl)
				if !ok || group.Tok != token.TYPE {
					continue
				}
				for _, spec := range group.Specs {
					spec := spec.(*ast.TypeSpec)
					comment := spec.Doc.Text()
					if !group.Lparen.IsValid() {
						comment = group.Doc.Text()
					}
					if spec.Name.IsExported() && !yield(spec, comment) {
						return
					}
				}
			}
		}
	}
}

// fieldsShown returns the fields of the declaration that the comment of a type shows. Each must have a comment there.
func fieldsShown(t *testing.T, files *token.FileSet, name, comment string) []string {
	t.Helper()
	_, text, found := strings.Cut(comment, "\ttype "+name+" struct {\n")
	text, _, closed := strings.Cut(text, "\n\t}\n")
	if !found || !closed {
		t.Errorf("the comment of %s shows no declaration", name)
		return nil
	}
	file, err := parser.ParseFile(files, name+" as shown", "package p\ntype s struct {\n"+text+"\n}\n",
		parser.ParseComments)
	if err != nil {
		t.Errorf("what the comment of %s shows is no Go: %v", name, err)
		return nil
	}
	s := file.Decls[0].(*ast.GenDecl).Specs[0].(*ast.TypeSpec).Type.(*ast.StructType)
	for _, f := range s.Fields.List {
		if f.Comment.Text() == "" {
			t.Errorf("the comment of %s says nothing of %s", name, f.Names)
		}
	}
	return fieldsOf(t, files, s)
}

// fieldsOf returns the exported fields of a struct with their types, in order, without the name of package driver.
func fieldsOf(t *testing.T, files *token.FileSet, s *ast.StructType) (fields []string) {
	t.Helper()
	for _, f := range s.Fields.List {
		var kind strings.Builder
		if err := printer.Fprint(&kind, files, f.Type); err != nil {
			t.Fatal(err)
		}
		for _, name := range f.Names {
			if name.IsExported() {
				fields = append(fields, name.Name+" "+strings.ReplaceAll(kind.String(), "driver.", ""))
			}
		}
	}
	return fields
}

// Programs label metrics by the reasons that the comment of LostReason lists.
func TestLostReason_ListsAllReasonsInItsComment(t *testing.T) {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, "driver/errors.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var want, got []string
	for _, decl := range file.Decls {
		group, ok := decl.(*ast.GenDecl)
		if !ok || group.Tok != token.CONST {
			continue
		}
		for _, spec := range group.Specs {
			v := spec.(*ast.ValueSpec)
			if name, is := v.Type.(*ast.Ident); is && name.Name == "LostReason" {
				want = append(want, v.Names[0].Name+" "+v.Values[0].(*ast.BasicLit).Value)
			}
		}
	}
	for spec, comment := range typesIn(t, files, ".") {
		if spec.Name.Name != "LostReason" {
			continue
		}
		for line := range strings.Lines(comment) {
			if words := strings.Fields(line); strings.HasPrefix(line, "\t") {
				got = append(got, words[0]+" "+words[1])
			}
		}
	}
	if len(want) == 0 || !slices.Equal(got, want) {
		t.Errorf("the comment lists %q, and there are %q", got, want)
	}
}
