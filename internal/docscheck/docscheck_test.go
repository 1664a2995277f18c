package main

import (
	"strings"
	"testing"
	"testing/fstest"
)

const example = `package x

func ExampleOpen() {
	a := 1

	if a == 1 {
		println(a)
	}
	// Output:
	// 1
}

func other() {
	// docs: part
	b := 2
	// docs: end
}
`

const twinLinks = "[English](README.md) [中文](README.zh-CN.md)\n"

const goodREADME = "# One\n" + twinLinks + "## Two\n\n" +
	"<!-- code: x_test.go ExampleOpen -->\n```go\na := 1\n\nif a == 1 {\n\tprintln(a)\n}\n```\n" +
	"\n| a | b |\n|---|---|\n\n[two](#two) [doc](docs/a.md#the-end)\n"

// check runs docscheck on files and returns its exit code and what it printed.
func check(files map[string]string) (int, string) {
	fsys := fstest.MapFS{}
	for name, text := range files {
		fsys[name] = &fstest.MapFile{Data: []byte(text)}
	}
	var out strings.Builder
	rc := run(fsys, &out)
	return rc, out.String()
}

// good is a tree with nothing to mend, and changes to it.
func good(changes map[string]string) map[string]string {
	files := map[string]string{
		"README.md":       goodREADME,
		"README.zh-CN.md": goodREADME,
		"docs/a.md": "# The end.\n\n[up](../README.md), [folder](../docs), [web](https://example.com/x), " +
			"`[no](link)`\n",
		"x_test.go": example,
	}
	for name, text := range changes {
		if text == "" {
			delete(files, name)
			continue
		}
		files[name] = text
	}
	if _, given := changes[index]; !given {
		files[index] = indexOf(files)
	}
	return files
}

// indexOf links to each page of docs.
func indexOf(files map[string]string) string {
	text := "# Index\n"
	for name := range files {
		if page, is := strings.CutPrefix(name, "docs/"); is && strings.HasSuffix(page, ".md") {
			text += "\n[" + page + "](" + page + ")\n"
		}
	}
	return text
}

func TestRun_OnAGoodTree_FindsNothing(t *testing.T) {
	drawings := map[string]string{ // one that adapts itself, and one that no document shows
		"docs/b.md": "![x](x.svg)\n", "docs/x.svg": "<svg><style>@media (prefers-color-scheme:dark){}</style></svg>\n",
		"docs/y.svg": "<svg/>\n",
	}
	if rc, out := check(good(drawings)); rc != 0 {
		t.Fatalf("exit %d, want 0:\n%s", rc, out)
	}
}

func TestRun_WithoutBothReadmes_FindsNothing(t *testing.T) {
	files := good(map[string]string{"README.md": "", "README.zh-CN.md": "", "docs/a.md": "# A\n"})
	if rc, out := check(files); rc != 0 {
		t.Fatalf("exit %d, want 0:\n%s", rc, out)
	}
}

func TestRun_NamesEachFault(t *testing.T) {
	replaced := func(old, with string) string { return strings.Replace(goodREADME, old, with, 1) }
	tests := []struct {
		name    string
		changes map[string]string
		want    string
	}{
		{
			"a README without its twin",
			map[string]string{"README.zh-CN.md": ""},
			"README.md:1: there is no README.zh-CN.md",
		},
		{
			"a heading less",
			map[string]string{"README.zh-CN.md": replaced("## Two\n", "<a id=two>\n")},
			"1 headings, but README.md has 2",
		},
		{"another level", map[string]string{"README.zh-CN.md": replaced("## Two", "### Two")}, "heading 2 has level 3"},
		{
			"no link to the twin",
			map[string]string{"README.zh-CN.md": replaced("[English](README.md)", "English")},
			"README.zh-CN.md:1: no link to README.md in the first 10 lines",
		},
		{
			"a link to the twin at the end",
			map[string]string{"README.md": replaced(twinLinks, "\n") + twinLinks},
			"README.md:1: no link to README.zh-CN.md in the first 10 lines",
		},
		{
			"a table row more",
			map[string]string{"README.zh-CN.md": goodREADME + "| c | d |\n"},
			"3 table rows, but README.md has 2",
		},
		{
			"a code block more",
			map[string]string{"README.zh-CN.md": goodREADME + "```\nx\n```\n"},
			"2 code blocks, but README.md has 1",
		},
		{
			"other code",
			map[string]string{"README.zh-CN.md": replaced("a := 1", "a := 2")},
			"code block 1 differs from README.md:6",
		},
		{
			"code that is not the example's",
			map[string]string{"x_test.go": strings.Replace(example, "a := 1", "a := 3", 1)},
			"README.md:6: the code differs from x_test.go ExampleOpen",
		},
		{
			"Go code without a marker",
			map[string]string{"README.md": replaced("<!--", "<!- ")},
			"README.md:6: Go code without a marker",
		},
		{"a marker of nothing", map[string]string{"x_test.go": "package x\n"}, "x_test.go has no function ExampleOpen"},
		{
			"a region that is not there",
			map[string]string{"docs/b.md": "<!-- code: x_test.go #gone -->\n```go\nb := 2\n```\n"},
			"no lines between",
		},
		{
			"lines that are not there",
			map[string]string{"docs/b.md": "<!-- code: x_test.go 17-99 -->\n```go\n}\n```\n"},
			"of 17 lines there are no lines 17-99",
		},
		{
			"a link to nothing",
			map[string]string{"docs/b.md": "[x](nothing.md)\n"},
			"docs/b.md:1: link nothing.md: there is no docs/nothing.md",
		},
		{"a reference to nothing", map[string]string{"docs/b.md": "[x]: ../nothing\n"}, "there is no nothing"},
		{
			"a link to no heading",
			map[string]string{"docs/b.md": "[x](a.md#middle)\n"},
			"docs/a.md has no heading with this anchor",
		},
		{"an absolute link", map[string]string{"docs/b.md": "[x](/docs/a.md)\n"}, "is absolute"},
		{
			"a drawing for light pages only",
			map[string]string{"docs/b.md": "![x](x.svg)\n", "docs/x.svg": "<svg/>\n"},
			"docs/x.svg:1: no colours for dark pages",
		},
		{
			"a machine's folder",
			map[string]string{"docs/b.sh": "cd " + "/ro" + "ot/x\n"},
			"docs/b.sh:1: /ro" + "ot/ names a folder",
		},
		{
			"unfinished work",
			map[string]string{"b.go": "package b\n\n// TO" + "DO: all\n"},
			"b.go:3: TO" + "DO names unfinished work",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			rc, out := check(good(tt.changes))
			if rc != 1 || !strings.Contains(out, tt.want) {
				t.Errorf("exit %d, want 1 and %q in:\n%s", rc, tt.want, out)
			}
		})
	}
}

func TestCut_ReturnsTheNamedLines(t *testing.T) {
	files := &tree{texts: map[string]string{
		"x_test.go": example, "list.txt": "one\ntwo\n",
		"y_test.go": "package y\n\nfunc Example() { //nolint:y // why\n\ta := 1 //nolint:x // stays\n}\n",
	}}
	for source, want := range map[string]string{
		"x_test.go ExampleOpen": "a := 1\n\nif a == 1 {\n\tprintln(a)\n}\n",
		"x_test.go #part":       "b := 2\n",
		"y_test.go Example":     "a := 1 //nolint:x // stays\n", // and not what is for a linter alone
		"list.txt":              "one\ntwo\n",
		"list.txt 2-2":          "two\n",
	} {
		if got, err := cut(source, files); err != nil || got != want {
			t.Errorf("cut(%q) = %q, %v, want %q", source, got, err, want)
		}
	}
}

func TestParseDoc_LooksIntoNoCodeBlock(t *testing.T) {
	d := parseDoc("a.md",
		"# A\n\n~~~sh\n# no heading\n| no row |\n[no](link)\n~~~\n\n- item\n\n  ```\n  x\n  ```\n# A\n")
	if len(d.headings) != 2 || len(d.rows) != 0 || len(d.links) != 0 || len(d.blocks) != 2 {
		t.Fatalf("got %+v", d)
	}
	if got := d.headings[1].slug; got != "a-1" {
		t.Errorf("second anchor is %q, want a-1", got)
	}
	if got := d.blocks[1].code; got != "x\n" {
		t.Errorf("code in a list is %q, want without its indentation", got)
	}
}

const engine = `package e

import "github.com/interlock-go/interlock/driver"

const checksPage = "docs/doctor.md#findings-on-e"

var one = driver.Finding{Check: "one"}
var two = enginekit.Warn("two", "", "")
func merge(check string, x int) driver.Finding { return enginekit.Fine(check, "%d", x) }
var three = merge("three", 3)
`

const doctor = "# Doctor\n\n### Findings on E\n\n| finding | means |\n|---|---|\n" +
	"| `one` | `1` |\n| `two`, `three` | x |\n\n### Next\n\n| `four` | x |\n"

func TestRun_WantsEachCheckExplained(t *testing.T) {
	for name, tt := range map[string]struct{ engine, doctor, want string }{
		"all are": {engine, doctor, ""},
		"a check more": {
			strings.Replace(engine, `"two"`, `"five"`, 1), doctor,
			`e/e.go:8: check "five": the table at docs/doctor.md#findings-on-e has no row`,
		},
		"a merged one": {strings.Replace(engine, `"three"`, `"six"`, 1), doctor, `check "six"`},
		"a row more":   {strings.Replace(engine, `"one"`, `"two"`, 1), doctor, `there is no check "one"`},
		"no heading":   {engine, strings.Replace(doctor, "on E", "on F", 1), "has no heading with this anchor"},
		"no page": {
			strings.Replace(engine, "docs/", "", 1), doctor,
			`check "one": no constant of its package names a page`,
		},
		"no literal": {
			strings.Replace(engine, `Check: "one"`, `Check: name()`, 1), doctor,
			"write the name of a check as a literal",
		},
		"another table": {strings.Replace(engine, `"one"`, `"four"`, 1), doctor, `check "four"`},
	} {
		t.Run(name, func(t *testing.T) {
			rc, out := check(good(map[string]string{"e/e.go": tt.engine, "docs/doctor.md": tt.doctor}))
			if (rc != 0) != (tt.want != "") || !strings.Contains(out, tt.want) {
				t.Errorf("exit %d, want %q in:\n%s", rc, tt.want, out)
			}
		})
	}
}

// What several engines share has no page of its own: each of them explains it.
func TestRun_WantsSharedChecksExplainedByEachThatImportsThem(t *testing.T) {
	shared := "package kit\n\nimport \"github.com/interlock-go/interlock/driver\"\n\n" +
		"var x = driver.Finding{Check: \"shared\"}\n"
	with := strings.Replace(engine, "import ", "import _ \"example.com/kit\"\nimport ", 1)
	files := good(map[string]string{"kit/kit.go": shared, "e/e.go": with, "docs/doctor.md": doctor})
	if rc, out := check(files); rc != 1 || !strings.Contains(out, `kit/kit.go:5: check "shared": the table at`) {
		t.Errorf("exit %d:\n%s", rc, out)
	}
	files["docs/doctor.md"] = strings.Replace(doctor, "`one`", "`one`, `shared`", 1)
	if rc, out := check(files); rc != 0 {
		t.Errorf("exit %d:\n%s", rc, out)
	}
}
