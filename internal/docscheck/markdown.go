package main

import (
	"path"
	"regexp"
	"strconv"
	"strings"
	"unicode"
)

// doc is what the checks need of a Markdown file.
type doc struct {
	path     string
	headings []heading
	blocks   []block
	rows     []int // the lines of table rows
	links    []link
}

type heading struct {
	line  int
	level int
	slug  string // the anchor that code hosts give it
}

type block struct {
	line   int
	lang   string
	code   string
	source string // of a marker comment on the line before, see checkSnippets
}

type link struct {
	line   int
	target string
}

var (
	headingLine = regexp.MustCompile(`^(#{1,6})\s+(.*?)\s*#*$`)
	fenceLine   = regexp.MustCompile("^(\\s*)(```+|~~~+)\\s*([^\\s`]*)")
	markerLine  = regexp.MustCompile(`^\s*<!--\s*code:\s*(.*?)\s*-->\s*$`)
	inlineCode  = regexp.MustCompile("`[^`]*`")
	inlineLink  = regexp.MustCompile(`\]\(\s*<?([^)\s>]+)>?(?:\s+"[^"]*")?\s*\)`)
	refLink     = regexp.MustCompile(`^\s{0,3}\[[^\]]+\]:\s+<?([^\s>]+)>?`)
)

// parseDocs parses every Markdown file outside of test data.
func parseDocs(files *tree) map[string]*doc {
	docs := map[string]*doc{}
	for _, name := range files.paths() {
		if path.Ext(name) == ".md" && !inTestdata(name) {
			docs[name] = parseDoc(name, files.texts[name])
		}
	}
	return docs
}

func inTestdata(name string) bool {
	return strings.HasPrefix(name, "testdata/") || strings.Contains(name, "/testdata/")
}

func parseDoc(name, text string) *doc {
	d := &doc{path: name}
	marker := ""
	lines := strings.Split(text, "\n")
	for i := 0; i < len(lines); i++ {
		line := lines[i]
		if f := fenceLine.FindStringSubmatch(line); f != nil {
			end := endOfBlock(lines, i, f[2])
			d.blocks = append(d.blocks, block{
				line: i + 1, lang: f[3], source: marker, code: outdent(lines[i+1:end], f[1]),
			})
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
	d.numberSlugs()
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

// outdent takes the indentation of the fence, as in a list, from the code.
func outdent(lines []string, indent string) string {
	var b strings.Builder
	for _, line := range lines {
		b.WriteString(strings.TrimPrefix(line, indent) + "\n")
	}
	return b.String()
}

func (d *doc) addLine(n int, line string) {
	if h := headingLine.FindStringSubmatch(line); h != nil {
		d.headings = append(d.headings, heading{line: n, level: len(h[1]), slug: slug(h[2])})
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
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-', unicode.In(r, unicode.Letter, unicode.Mark, unicode.Nd, unicode.Pc):
			return r
		}
		return -1
	}, strings.ToLower(heading))
}

// numberSlugs makes the anchors of equal headings distinct, as code hosts do: name, name-1, name-2.
func (d *doc) numberSlugs() {
	seen := map[string]int{}
	for i, h := range d.headings {
		n := seen[h.slug]
		seen[h.slug]++
		if n > 0 {
			d.headings[i].slug = h.slug + "-" + strconv.Itoa(n)
		}
	}
}
