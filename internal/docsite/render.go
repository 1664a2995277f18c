package main

import (
	"bytes"
	"fmt"
	"html/template"
	"regexp"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/renderer/html"
	"github.com/yuin/goldmark/util"
)

// label is what pages of a language say around the document.
type label struct {
	Search, Contents, Skip, Source, Project, More, Play, None, Some, Section string
}

var labels = map[string]label{
	english: {
		Search: "Search", Contents: "Contents", Skip: "Skip to the text", Source: "Source of this page",
		Project: "Project", More: "More", Play: "Play the lab",
		None: "Nothing found", Some: "Found:", Section: "Link to this section",
	},
	chinese: {
		Search: "搜索", Contents: "目录", Skip: "跳到正文", Source: "本页源文件",
		Project: "项目", More: "更多", Play: "播放实验",
		None: "没有找到", Some: "找到：", Section: "本节链接",
	},
}

var pageTemplate = template.Must(template.ParseFS(assets, "assets/page.html"))

// view is what the template shows.
type view struct {
	label
	Lang, Title, Up, Out, Home string
	Origin                     template.URL // whatever its scheme: who runs the program names it
	Twin                       *twinView
	Menu                       []group
	Headings                   []heading // of the second level
	Body                       template.HTML
}

type twinView struct{ Lang, Out string }

var (
	beginsTable = regexp.MustCompile(`<table\b[^>]*>`)
	endsTable   = regexp.MustCompile(`</table\s*>`)
)

// scrolling puts tables into an element that scrolls when the screen is narrower than they are.
func scrolling(body []byte) string {
	body = beginsTable.ReplaceAll(body, []byte(`<div class="wide">$0`))
	return string(endsTable.ReplaceAll(body, []byte(`$0</div>`)))
}

// render makes the file of a page.
func (s *site) render(p *page) ([]byte, error) {
	var body bytes.Buffer
	if err := markdown(&elements{s, p}).Renderer().Render(&body, p.source, p.root); err != nil {
		return nil, err
	}
	v := view{
		label: labels[p.lang], Lang: p.lang, Title: p.title, Up: p.up(), Out: p.out,
		Menu: s.menus[p.lang], Home: outOf("README.md"),
		Origin: template.URL(s.sourceOf(p, p.name)),    //nolint:gosec // it is that of our own file
		Body:   template.HTML(scrolling(body.Bytes())), //nolint:gosec // it is our own text
	}
	if home := s.pages["README.md"]; home != nil {
		v.Home = s.in(home, p.lang).out
	}
	if t := s.twin(p); t != nil {
		v.Twin = &twinView{t.lang, t.out}
	}
	for _, h := range p.headings {
		if h.Level == 2 {
			v.Headings = append(v.Headings, h)
		}
	}
	var out bytes.Buffer
	err := pageTemplate.Execute(&out, v)
	return out.Bytes(), err
}

// markdown is Markdown as GitHub reads it.
func markdown(e *elements) goldmark.Markdown {
	options := []renderer.Option{html.WithUnsafe()} // the documents are as trusted as the code
	if e != nil {
		options = append(options, renderer.WithNodeRenderers(util.Prioritized(e, 1)))
	}
	return goldmark.New(goldmark.WithRendererOptions(options...),
		goldmark.WithExtensions(extension.GFM, extension.Footnote))
}

// elements renders what a page has otherwise than the parser's own renderer.
type elements struct {
	site *site
	page *page
}

func (e *elements) RegisterFuncs(r renderer.NodeRendererFuncRegisterer) {
	r.Register(ast.KindHeading, e.heading)
	r.Register(ast.KindFencedCodeBlock, e.code)
	r.Register(ast.KindCodeBlock, e.code)
	r.Register(ast.KindCodeSpan, e.span)
	r.Register(ast.KindRawHTML, e.html)
	r.Register(ast.KindHTMLBlock, e.html)
}

// heading adds a link to the heading itself.
func (e *elements) heading(w util.BufWriter, _ []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	level := n.(*ast.Heading).Level // it is registered for these
	value, _ := n.AttributeString("id")
	id, _ := value.([]byte)
	switch {
	case entering:
		fmt.Fprintf(w, `<h%d id="%s">`, level, id)
	case level == 1:
		fmt.Fprint(w, "</h1>\n")
	default:
		fmt.Fprintf(w, ` <a class="here" href="#%s" aria-label="%s">#</a></h%d>`+"\n",
			id, labels[e.page.lang].Section, level)
	}
	return ast.WalkContinue, nil
}

func (e *elements) code(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	if entering {
		language := ""
		if f, ok := n.(*ast.FencedCodeBlock); ok {
			language = string(f.Language(source))
		}
		fmt.Fprintf(w, "<pre><code>%s</code></pre>\n", highlight(string(n.Lines().Value(source)), language))
	}
	return ast.WalkSkipChildren, nil
}

// hyphened is a word such as --no-wait, after whose hyphens a browser would break the line. Words longer than
// longestWhole may be broken: a phone has room for some 40 letters.
var hyphened = regexp.MustCompile(`\S*-\S*`)

const longestWhole = 30

// span keeps the words of code in a line whole.
func (e *elements) span(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		return ast.WalkContinue, nil
	}
	code := strings.ReplaceAll(plain(n, source), "\n", " ")
	text := hyphened.ReplaceAllStringFunc(template.HTMLEscapeString(code), func(word string) string {
		if len(word) > longestWhole {
			return word
		}
		return `<span class="whole">` + word + "</span>"
	})
	_, err := fmt.Fprintf(w, "<code>%s</code>", text)
	return ast.WalkSkipChildren, err
}

var (
	comment = regexp.MustCompile(`(?s)<!--.*?-->`)
	linking = regexp.MustCompile(`\b(href|src|srcset)="([^"]*)"`)
)

// html keeps HTML, but for comments, and makes its links those of the site.
func (e *elements) html(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		return ast.WalkContinue, nil
	}
	var text []byte
	switch n := n.(type) {
	case *ast.RawHTML:
		text = n.Segments.Value(source)
	case *ast.HTMLBlock:
		text = n.Lines().Value(source)
		if n.HasClosure() {
			text = append(text, n.ClosureLine.Value(source)...)
		}
	}
	text = linking.ReplaceAllFunc(comment.ReplaceAll(text, nil), func(match []byte) []byte {
		m := linking.FindSubmatch(match)
		return fmt.Appendf(nil, `%s="%s"`, m[1], e.site.target(e.page, n, m[2]))
	})
	_, err := w.Write(text)
	return ast.WalkSkipChildren, err
}
