package main

import (
	"bytes"
	"path"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

const (
	english = "en"
	chinese = "zh-CN"
)

// page is one document.
type page struct {
	name     string // the path of the Markdown file
	out      string // the path of the page
	lang     string
	title    string
	source   []byte
	root     ast.Node
	headings []heading
	anchors  map[string]bool
}

type heading struct {
	Level  int
	Anchor string
	Text   string
}

// idAttribute is an anchor in HTML.
var idAttribute = regexp.MustCompile(`\b(?:id|name)="([^"]+)"`)

func parsePage(name string, source []byte) *page {
	p := &page{name: name, out: outOf(name), lang: english, title: name, source: source, anchors: map[string]bool{}}
	if strings.HasSuffix(name, "."+chinese+".md") {
		p.lang = chinese
	}
	p.root = markdown(nil).Parser().Parse(text.NewReader(source))
	each(p.root, func(t *ast.Text) { t.SetSoftLineBreak(t.SoftLineBreak() && !joined(source, t.Segment.Stop)) })
	p.findHeadings()
	for _, m := range idAttribute.FindAllSubmatch(source, -1) {
		p.anchors[string(m[1])] = true
	}
	return p
}

// outOf returns the path of the page of a document. That of README.md is what a browser shows of a folder.
func outOf(name string) string {
	dir, file := path.Split(name)
	if rest, ok := strings.CutPrefix(file, "README."); ok {
		file = "index." + rest
	}
	return dir + strings.TrimSuffix(file, ".md") + ".html"
}

// nameIn returns what a document is called in a language.
func nameIn(name, lang string) string {
	base := strings.TrimSuffix(strings.TrimSuffix(name, ".md"), "."+chinese)
	if lang == chinese {
		base += "." + chinese
	}
	return base + ".md"
}

// findHeadings gives every heading the anchor that it has on GitHub: equal ones are numbered from the second on.
func (p *page) findHeadings() {
	seen := map[string]int{}
	each(p.root, func(h *ast.Heading) {
		text := plain(h, p.source)
		anchor := slug(text)
		n := seen[anchor]
		seen[anchor]++
		if n > 0 {
			anchor += "-" + strconv.Itoa(n)
		}
		h.SetAttributeString("id", []byte(anchor))
		p.anchors[anchor] = true
		if h.Level == 1 && p.title == p.name {
			p.title = text
		}
		p.headings = append(p.headings, heading{h.Level, anchor, text})
	})
}

// slug is the anchor of a heading: lower case, without punctuation, spaces as hyphens. Letters of all scripts stay.
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

// joined reports whether the lines before and after a place are joined without a space: both are Chinese, or one of the
// two characters is a Chinese punctuation mark, which brings its own space.
func joined(source []byte, at int) bool {
	const marks = " *_\r\n"
	last, _ := utf8.DecodeLastRune(bytes.TrimRight(source[:at], marks))
	next, _ := utf8.DecodeRune(bytes.TrimLeft(source[at:], marks))
	return isChinese(last) && isChinese(next) || isFullWidthMark(last) || isFullWidthMark(next)
}

// isChinese reports whether r is an ideograph or a Chinese punctuation mark.
func isChinese(r rune) bool { return r >= 0x2e80 && r != utf8.RuneError }

// isFullWidthMark reports whether r is a punctuation mark that is as wide as an ideograph.
func isFullWidthMark(r rune) bool {
	return isChinese(r) && unicode.In(r, unicode.Po, unicode.Ps, unicode.Pe)
}

// each calls do for every node of a type below n, and n itself.
func each[T ast.Node](n ast.Node, do func(T)) {
	_ = ast.Walk(n, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if t, ok := n.(T); ok && entering {
			do(t)
		}
		return ast.WalkContinue, nil
	})
}

// plain returns the text of a node without its marks.
func plain(n ast.Node, source []byte) string {
	var b strings.Builder
	_ = ast.Walk(n, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			if n.Type() == ast.TypeBlock {
				b.WriteByte(' ')
			}
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.Text:
			writeText(&b, n, source)
		case *ast.String:
			b.Write(n.Value)
		case *ast.AutoLink:
			b.Write(n.Label(source))
		case *ast.FencedCodeBlock, *ast.CodeBlock:
			b.Write(n.Lines().Value(source))
		}
		return ast.WalkContinue, nil
	})
	return strings.TrimSpace(b.String())
}

func writeText(b *strings.Builder, n *ast.Text, source []byte) {
	value := n.Segment.Value(source)
	if n.Parent() == nil || n.Parent().Kind() != ast.KindCodeSpan {
		value = util.ResolveEntityNames(util.ResolveNumericReferences(util.UnescapePunctuations(value)))
	}
	b.Write(value)
	if n.SoftLineBreak() || n.HardLineBreak() {
		b.WriteByte(' ')
	}
}
