package main

import (
	"bytes"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// small is a repository with one of everything that the site knows.
func small() fstest.MapFS {
	files := fstest.MapFS{}
	for name, text := range map[string]string{
		"README.md": "# interlock\n\n[中文](README.zh-CN.md)\n\n" +
			"See [locks](docs/locks.md#what-is-a-lock), [limits](docs/limits), " +
			"[the code](lock.go), [the lab](docs/lab/index.html#D3)\n" +
			"and\n[here](#interlock).\n",
		"README.zh-CN.md": "# interlock\n\n[English](README.md)，[锁](docs/locks.zh-CN.md#什么是锁)。\n",
		"docs/README.md": "# Documents\n\n## Read first\n\n" +
			"| page | what |\n|---|---|\n| [locks](locks.md) | leases |\n",
		"docs/locks.md": "# Locks\n\n## What *is* a `Lock`?\n\nA zebra &lt;holds> it.\n\n" +
			"![a picture](lock.svg)\n\n```go\nfunc f() {} // done\n```\n",
		"docs/locks.zh-CN.md": "# 锁\n\n## 什么是锁？\n\n一把锁只有\n**一个持有者**。\nRedis\n里的锁。\n",
		"docs/limits/README.md": "# Limits\n\n`run --no-wait <b>` [back](../locks.md) to [A](#a-1)\n\n" +
			"## A\n\n## A\n\n" +
			"| a | b |\n|---|---|\n| <a id=\"row\"></a>c | d |\n\n" +
			"<!-- not shown -->\n<img src=\"../lock.svg\" alt=\"\">\n",
		"docs/limits/redis.md": "# Limits of Redis\n\nSee [c](README.md#row).\n",
		"docs/lock.svg":        "<svg/>",
		"docs/lab/index.html":  `<html><p id="D3">played</p></html>`,
		"wire/wire.md":         "# The format\n",
		"testdata/no.md":       "# no\n",
		"lock.go":              "package interlock\n",
	} {
		files[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return files
}

func buildSmall(t *testing.T, files fstest.MapFS) *site {
	t.Helper()
	s, err := build(files, "../..")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestBuild_MakesEveryPage(t *testing.T) {
	s := buildSmall(t, small())
	if len(s.problems) > 0 {
		t.Fatal(s.problems)
	}
	for name, wants := range map[string][]string{
		"index.html": {
			`<html lang="en">`, `<title>interlock</title>`,
			`href="docs/locks.html#what-is-a-lock"`, `href="docs/limits/index.html"`, `href="../../lock.go"`,
			`href="docs/lab/index.html#D3"`, "and\n<a href=\"#interlock\"", `hreflang="zh-CN" href="index.zh-CN.html"`,
		},
		"index.zh-CN.html": {
			`<html lang="zh-CN">`, `hreflang="en" href="index.html"`,
			`href="docs/locks.zh-CN.html#%E4%BB%80%E4%B9%88%E6%98%AF%E9%94%81"`,
		},
		"docs/locks.html": {
			`<title>Locks · interlock</title>`, `<h2 id="what-is-a-lock">`,
			`<img src="../docs/lock.svg" alt="a picture">`,
			`<span class="keyword">func</span> f() {} <span class="comment">// done</span>`,
			`href="../docs/locks.zh-CN.html">中文</a>`, `href="../../../docs/locks.md">Source`,
		},
		"docs/locks.zh-CN.html": {
			`<h2 id="什么是锁">`, "一把锁只有<strong>一个", "。Redis\n里的锁", `href="../docs/locks.html">English</a>`,
		},
		"docs/limits/index.html": {
			`<code>run <span class="whole">--no-wait</span> &lt;b&gt;</code>`,
			`<h2 id="a">`, `<h2 id="a-1">`, `<div class="wide"><table>`, `<img src="../../docs/lock.svg" alt="">`,
		},
		"docs/limits/redis.html": {`href="../../docs/limits/index.html#row"`},
		"docs/lab/index.html":    {`<p id="D3">played</p>`},
		"docs/lock.svg":          {`<svg/>`},
	} {
		for _, want := range wants {
			if !bytes.Contains(s.files[name], []byte(want)) {
				t.Errorf("%s has no %s\n%s", name, want, s.files[name])
			}
		}
	}
	if s.files["testdata/no.html"] != nil || s.files["lock.go"] != nil {
		t.Error("input of tests or a source file became a page")
	}
	if bytes.Contains(s.files["docs/limits/index.html"], []byte("not shown")) {
		t.Error("a comment is shown")
	}
}

func TestBuild_ThePageOfTheLab_StandsBehindWhatExplainsIt(t *testing.T) {
	files := small()
	files["docs/lab.md"] = &fstest.MapFile{Data: []byte("# The lab\n")}
	const link = `href="../lab.html"`
	if text := buildSmall(t, files).files["docs/lab.html"]; bytes.Contains(text, []byte(link)) {
		t.Errorf("nobody made the page, but there is a link to it:\n%s", text)
	}
	files["lab.html"] = &fstest.MapFile{Data: []byte("<html>played</html>")}
	s := buildSmall(t, files)
	if text := s.files["docs/lab.html"]; !bytes.Contains(text, []byte(link)) {
		t.Errorf("no link to the page in\n%s", text)
	}
	if text := string(s.files["lab.html"]); text != "<html>played</html>" {
		t.Errorf("the site has %q as the page", text)
	}
}

func TestBuild_SourceFilesAreWhereTheURLSays(t *testing.T) {
	for _, source := range []string{"https://example.com/blob/main", "file:///src"} {
		s, err := build(small(), source+"/")
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{`href="` + source + `/lock.go"`, `href="` + source + `/README.md"`} {
			if !bytes.Contains(s.files["index.html"], []byte(want)) {
				t.Errorf("no %s in\n%s", want, s.files["index.html"])
			}
		}
	}
}

func TestBuild_NamesDeadLinks(t *testing.T) {
	files := small()
	files["docs/dead.md"] = &fstest.MapFile{Data: []byte("# Dead\n\n" +
		"[a](locks.md)\n[b](gone.md)\n[c](locks.md#gone)\n\n" +
		"| [d](/etc) | [e](lab/index.html#D4) |\n|---|---|\n| ![f](gone.png) | [g](../..) |\n\n" +
		"<a href=\"gone.go\">h</a>\n\n`[i](no.md)`\n")}
	got := buildSmall(t, files).problems
	want := []string{
		"docs/dead.md:4: link gone.md: there is no docs/gone.md",
		"docs/dead.md:5: link locks.md#gone: docs/locks.md has no heading with this anchor",
		"docs/dead.md:7: link /etc: it is absolute; write it relative to this file",
		"docs/dead.md:7: link lab/index.html#D4: docs/lab/index.html has nothing with this anchor",
		"docs/dead.md:9: link ../..: there is no ..",
		"docs/dead.md:9: link gone.png: there is no docs/gone.png",
		"docs/dead.md:11: link gone.go: there is no docs/gone.go",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestRender_OfATableInHTML_KeepsTheElementsNested(t *testing.T) {
	files := small()
	files["docs/table.md"] = &fstest.MapFile{Data: []byte(
		"# T\n\n<table align=\"center\"><tr><td>a</td></tr></table>\n")}
	text := buildSmall(t, files).files["docs/table.html"]
	if begin, end := bytes.Count(text, []byte("<div")), bytes.Count(text, []byte("</div>")); begin != end {
		t.Errorf("%d elements begin, %d end:\n%s", begin, end, text)
	}
}

// The place of a page is known before the page is made, also to links in HTML.
func TestBuild_OfTwoFilesAtOnePlace_SaysSo(t *testing.T) {
	for name, link := range map[string]string{
		"Markdown": "[p](page.html)", "HTML": "<a href=\"page.html\">p</a>", "no link": "",
	} {
		files := small()
		files["docs/page.md"] = &fstest.MapFile{Data: []byte("# Page\n")}
		files["docs/page.html"] = &fstest.MapFile{Data: []byte("<p>another</p>")}
		files["docs/to.md"] = &fstest.MapFile{Data: []byte("# To\n\n" + link + "\n")}
		wantTaken(t, name, files, "docs/page.html", link != "")
	}
	files := small()
	files["docs/limits/index.md"] = &fstest.MapFile{Data: []byte("# Also\n")}
	wantTaken(t, "two pages", files, "docs/limits/index.html", true)
}

// wantTaken fails the test unless the place of a file is taken, or is not.
func wantTaken(t *testing.T, name string, files fstest.MapFS, place string, want bool) {
	t.Helper()
	got := strings.Join(buildSmall(t, files).problems, "\n")
	if strings.Contains(got, place+taken) != want {
		t.Errorf("%s: the problems are %q", name, got)
	}
}

func TestRun_WritesNothingWithADeadLink(t *testing.T) {
	root, to := t.TempDir(), t.TempDir()
	if err := os.WriteFile(root+"/README.md", []byte("[a](gone.md)\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := run([]string{"-to", to, root}, t.Output()); err == nil {
		t.Error("there is no error")
	}
	if entries, _ := os.ReadDir(to); len(entries) > 0 {
		t.Error(entries)
	}
}

func TestMenu_HasWhatTheIndexListsAndThenTheRest(t *testing.T) {
	s := buildSmall(t, small())
	for lang, want := range map[string]string{
		english: " [Documents docs/index.html]; Read first [Locks docs/locks.html]; Limits [Limits " +
			"docs/limits/index.html, Limits of Redis docs/limits/redis.html]; More [The format wire/wire.html]",
		chinese: " [Documents docs/index.html]; Read first [锁 docs/locks.zh-CN.html]; 限制 [Limits " +
			"docs/limits/index.html, Limits of Redis docs/limits/redis.html]; 更多 [The format wire/wire.html]",
	} {
		if got := told(s.menus[lang]); got != want {
			t.Errorf("%s:\n%s\nwant\n%s", lang, got, want)
		}
	}
}

func TestMenu_IsTheTreeWithoutAnIndex(t *testing.T) {
	files := small()
	delete(files, "docs/README.md")
	got := told(buildSmall(t, files).menus[english])
	want := "Limits [Limits docs/limits/index.html, Limits of Redis docs/limits/redis.html]; " +
		"More [Locks docs/locks.html, The format wire/wire.html]"
	if got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}

// told writes a menu in a line.
func told(groups []group) string {
	var parts []string
	for _, g := range groups {
		var items []string
		for _, i := range g.Items {
			items = append(items, i.Title+" "+i.Out)
		}
		parts = append(parts, g.Title+" ["+strings.Join(items, ", ")+"]")
	}
	return strings.Join(parts, "; ")
}

func TestIndex_HasTheTextOfEverySection(t *testing.T) {
	s := buildSmall(t, small())
	text, isScript := bytes.CutPrefix(s.files["index.js"], []byte("window.documents = "))
	if !isScript {
		t.Fatalf("%.60s", s.files["index.js"])
	}
	var pages []indexed
	if err := json.Unmarshal(bytes.TrimSuffix(text, []byte(";\n")), &pages); err != nil {
		t.Fatal(err)
	}
	if len(pages) != len(s.names) {
		t.Errorf("%d pages in the index, %d on the site", len(pages), len(s.names))
	}
	at := slices.IndexFunc(pages, func(p indexed) bool { return p.Out == "docs/locks.html" })
	if at < 0 || len(pages[at].Sections) != 2 {
		t.Fatalf("%+v", pages)
	}
	got := pages[at].Sections[1]
	if zh := pages[at+1].Sections[1].Text; !strings.Contains(zh, "只有一个") {
		t.Error(zh)
	}
	if got.Anchor != "what-is-a-lock" || got.Title != "What is a Lock?" ||
		!strings.Contains(got.Text, "A zebra <holds> it.") || !strings.Contains(got.Text, "func f()") {
		t.Errorf("%+v", got)
	}
}

func TestSlug_IsTheAnchorOfGitHub(t *testing.T) {
	for heading, want := range map[string]string{
		"What is it?":               "what-is-it",
		"Coming from flock(1)":      "coming-from-flock1",
		"A - B":                     "a---b",
		"redislock/conn: v1.2_x":    "redislockconn-v12_x",
		"围栏：令牌（Token）、顺序":           "围栏令牌token顺序",
		"什么时候 用 Redis？":             "什么时候-用-redis",
		"Größe ½ 2":                 "größe--2",
		"naïve (decomposed ı̈)":     "naïve-decomposed-ı̈",
		"\u2019quoted\u2019 — dash": "quoted--dash",
	} {
		if got := slug(heading); got != want {
			t.Errorf("%s: %s, want %s", heading, got, want)
		}
	}
}

func TestHighlight_LosesNothing(t *testing.T) {
	for _, c := range []struct{ lang, code, want string }{
		{"sh", "a --b # c\nd '#' \"e\"", "a --b §comment:# c§\nd §string:'#'§ §string:\"e\"§"},
		{"go", "if x == '\"' { /* y */ }", "§keyword:if§ x == §string:'\"'§ { §comment:/* y */§ }"},
		{"json", `{"a": true}`, `{§string:"a"§: §keyword:true§}`},
		{"", `<"a">`, `<"a">`},
	} {
		got := highlight(c.code, c.lang)
		for _, kind := range kinds {
			got = strings.ReplaceAll(got, `<span class="`+kind+`">`, "§"+kind+":")
		}
		got = strings.NewReplacer("</span>", "§", "&lt;", "<", "&gt;", ">", "&#34;", `"`, "&#39;", "'").Replace(got)
		if got != c.want {
			t.Errorf("%s: %s, want %s", c.lang, got, c.want)
		}
	}
}
