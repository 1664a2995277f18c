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
	if rc, out := check(good(map[string]string{"docs/b.md": "![x](x.svg)\n", "docs/x.svg": "<svg/>\n"})); rc != 0 {
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
			"README.zh-CN.md:6: something else than in README.md:3",
		},
		{
			"another level",
			map[string]string{"README.zh-CN.md": replaced("## Two", "### Two")},
			"README.zh-CN.md:3: something else than in README.md:3",
		},
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
			"README.zh-CN.md:18: no counterpart in README.md",
		},
		{
			"a code block more",
			map[string]string{"README.zh-CN.md": goodREADME + "```\nx\n```\n"},
			"README.zh-CN.md:18: no counterpart in README.md",
		},
		{
			"other code",
			map[string]string{"README.zh-CN.md": replaced("a := 1", "a := 2")},
			"README.zh-CN.md:6: something else than in README.md:6",
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
		{
			"a link that a program prints",
			map[string]string{"e/b.go": "package e\n\nconst page = \"docs/a.md#middle\"\n"},
			"e/b.go:3: link ../docs/a.md#middle: docs/a.md has no heading with this anchor",
		},
		{"an absolute link", map[string]string{"docs/b.md": "[x](/docs/a.md)\n"}, "is absolute"},
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

var one = driver.Finding{Check: "one"}
var two = enginekit.Warn("two", "", "")
func merge(check string, x int) driver.Finding { return enginekit.Fine(check, "%d", x) }
var three = merge("three", 3)
`

func TestRun_WantsEachCheckExplained(t *testing.T) {
	for _, name := range []string{"", "one", "two", "three"} {
		for _, file := range []string{"elock/e.go", "elock/f/e.go", "enginekit/e.go"} {
			doctor := strings.Replace("# Doctor, one of two or three\n\n`one`, `two`, `three`\n", "`"+name+"`", "", 1)
			rc, out := check(good(map[string]string{file: engine, "docs/doctor.md": doctor}))
			want := "docs/doctor.md:1: " + name + " of " + file + " is not explained"
			if (rc != 0) != (name != "") || name != "" && !strings.Contains(out, want) {
				t.Errorf("without %q: exit %d:\n%s", name, rc, out)
			}
		}
	}
}
