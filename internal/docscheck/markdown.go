package main

import (
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// doc is what the checks need of a Markdown file.
type doc struct {
	path     string
	headings []heading
	blocks   []block
	rows     []int // the lines of table rows
	links    []link
}

// part is a heading, a block of code or a row of a table, as far as it is the same in every language.
type part struct {
	line int
	text string
}

// shape returns the parts of d, in order.
func (d *doc) shape() (parts []part) {
	for _, h := range d.headings {
		parts = append(parts, part{h.line, strings.Repeat("#", h.level)})
	}
	for _, b := range d.blocks {
		text := b.lang + "\n" + b.code
		if b.lang == "text" && b.source != "" {
			text = b.lang // what a program prints is in the language of the page, if a file of the repository says so
		}
		parts = append(parts, part{b.line, text})
	}
	for _, line := range d.rows {
		parts = append(parts, part{line, "|"})
	}
	slices.SortStableFunc(parts, func(a, b part) int { return a.line - b.line })
	return parts
}

type heading struct {
	line, level int
	slug        string // the anchor that code hosts give it
}

type block struct {
	line               int
	lang, code, source string // source is of a marker comment on the line before, see checkSnippets
}

type link struct {
	line   int
	target string
}

var (
	punctuation = regexp.MustCompile(`[^\p{L}\p{M}\p{Nd}\p{Pc} -]`)
	headingLine = regexp.MustCompile(`^(#{1,6})\s+(.*?)\s*#*$`)
	fenceLine   = regexp.MustCompile("^(\\s*)(```+|~~~+)\\s*([^\\s`]*)")
	markerLine  = regexp.MustCompile(`^\s*<!--\s*code:\s*(.*?)\s*-->\s*$`)
	inlineCode  = regexp.MustCompile("`[^`]*`")
	inlineLink  = regexp.MustCompile(`\]\(\s*<?([^)\s>]+)>?(?:\s+"[^"]*")?\s*\)`)
	printedLink = regexp.MustCompile(`"docs/[\w./-]+\.md#[\w-]+"`)
	refLink     = regexp.MustCompile(`^\s{0,3}\[[^\]]+\]:\s+<?([^\s>]+)>?`)
)

// parseDocs parses every Markdown file outside of test data. Of Go code it takes the links that programs print.
func parseDocs(files *tree) map[string]*doc {
	docs := map[string]*doc{}
	for _, name := range files.paths() {
		switch text := files.texts[name]; {
		case path.Ext(name) == ".md" && !strings.Contains("/"+name, "/testdata/"):
			docs[name] = parseDoc(name, text)
		case path.Ext(name) == ".go" && !strings.HasSuffix(name, "_test.go"):
			docs[name] = &doc{path: name}
			for _, at := range printedLink.FindAllStringIndex(text, -1) {
				l := link{line: 1 + strings.Count(text[:at[0]], "\n"), target: strings.Trim(text[at[0]:at[1]], `"`)}
				l.target = strings.Repeat("../", strings.Count(name, "/")) + l.target
				docs[name].links = append(docs[name].links, l)
			}
		}
	}
	return docs
}

func parseDoc(name, text string) *doc {
	d := &doc{path: name}
	marker := ""
	lines := strings.Split(text, "\n")
	for i := 0; i < len(lines); i++ {
		line := lines[i]
		if f := fenceLine.FindStringSubmatch(line); f != nil {
			b := block{line: i + 1, lang: f[3], source: marker}
			end := endOfBlock(lines, i, f[2])
			for _, code := range lines[i+1 : end] {
				b.code += strings.TrimPrefix(code, f[1]) + "\n" // in a list it is indented as its fence
			}
			d.blocks = append(d.blocks, b)
			marker, i = "", end
			continue
		}
		marker = ""
		if m := markerLine.FindStringSubmatch(line); m != nil {
			marker = m[1]
			continue
		}
		d.addLine(i+1, line)
	}
	return d
}

// endOfBlock returns the index of the line that closes the block opened on line i, or of the end of the file.
func endOfBlock(lines []string, i int, fence string) int {
	for j := i + 1; j < len(lines); j++ {
		rest := strings.TrimSpace(lines[j])
		if strings.HasPrefix(rest, fence) && strings.Trim(rest, fence[:1]) == "" {
			return j
		}
	}
	return len(lines)
}

func (d *doc) addLine(n int, line string) {
	if h := headingLine.FindStringSubmatch(line); h != nil {
		at := slug(h[2])
		for again := 1; d.heads(at); again++ { // as code hosts make them distinct
			at = slug(h[2]) + "-" + strconv.Itoa(again)
		}
		d.headings = append(d.headings, heading{line: n, level: len(h[1]), slug: at})
	}
	if strings.HasPrefix(strings.TrimSpace(line), "|") {
		d.rows = append(d.rows, n)
	}
	line = inlineCode.ReplaceAllString(line, "``")
	for _, m := range inlineLink.FindAllStringSubmatch(line, -1) {
		d.links = append(d.links, link{line: n, target: m[1]})
	}
	if m := refLink.FindStringSubmatch(line); m != nil {
		d.links = append(d.links, link{line: n, target: m[1]})
	}
}

// slug is the anchor of a heading, as internal/docsite makes it: lower case, without punctuation, spaces as hyphens.
// Letters of all scripts stay.
func slug(heading string) string {
	return strings.ReplaceAll(punctuation.ReplaceAllString(strings.ToLower(heading), ""), " ", "-")
}
