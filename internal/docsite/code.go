package main

import (
	"html"
	"regexp"
	"strings"
)

const (
	quoted   = `"(?:\\.|[^"\\\n])*"`
	keywords = `break|case|chan|const|continue|default|defer|else|fallthrough|for|func|go|goto|if|import|interface|` +
		`map|package|range|return|select|struct|switch|type|var`
)

// marked is what stands out in a language: first comments, second strings, third keywords. The documents have short
// pieces of few languages, so this is all the highlighting there is.
var marked = map[string]*regexp.Regexp{
	"go": regexp.MustCompile(`(//[^\n]*|(?s:/\*.*?\*/))|` +
		`(` + quoted + "|`[^`]*`|" + `'(?:\\.|[^'\\\n])+')|\b(` + keywords + `)\b`),
	"sh":   regexp.MustCompile(`(?m:(?:^|[ \t])(#[^\n]*))|("(?:\\.|[^"\\])*"|'[^']*')`),
	"yaml": regexp.MustCompile(`(?m:(?:^|[ \t])(#[^\n]*))|(` + quoted + `|'[^'\n]*')`),
	"hcl": regexp.MustCompile(`(#[^\n]*)|(` + quoted + `)|` +
		`\b(terraform|backend|resource|variable|provider|data|output)\b`),
	"json": regexp.MustCompile(`(\b\B)|(` + quoted + `)|\b(true|false|null)\b`),
}

var kinds = []string{"comment", "string", "keyword"}

// highlight returns code as HTML.
func highlight(code, language string) string {
	pattern := marked[language]
	if pattern == nil {
		return html.EscapeString(code)
	}
	var b strings.Builder
	at := 0
	for _, m := range pattern.FindAllStringSubmatchIndex(code, -1) {
		for i := 2; i+1 < len(m); i += 2 {
			if m[i] < 0 {
				continue
			}
			b.WriteString(html.EscapeString(code[at:m[i]]))
			b.WriteString(`<span class="` + kinds[i/2-1] + `">` + html.EscapeString(code[m[i]:m[i+1]]) + `</span>`)
			at = m[i+1]
		}
	}
	return b.String() + html.EscapeString(code[at:])
}
