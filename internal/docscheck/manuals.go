package main

import (
	"regexp"
	"strings"
)

// manual is the command's manual in Chinese. It has no English twin: that is what the command's help says.
const manual = "docs/command.zh-CN.md"

// What a reader looks up by name: what the help explains, in the manual, and what interlock doctor prints, on its page.
var manuals = []struct {
	page        string
	files, name *regexp.Regexp
}{
	// a flag, a command, an exit code, or a variable of the environment
	{manual, regexp.MustCompile(`^cmd/interlock/testdata/help.*\.golden$`), regexp.MustCompile(
		`(?m)^ +(?:-\w, )?(--[a-z][a-z-]*) |^  ([a-z]+) +[A-Z]|^  (\d+(?:-\d+|\+n)?) |^  ([A-Z]+_[A-Z_]+) `)},
	// the name of a check of an engine is a literal, so that it is found here
	{"docs/doctor.md", regexp.MustCompile(`^(\w+lock|enginekit)/(\w+/)?\w+\.go$`), regexp.MustCompile(
		`(?:enginekit\.(?:Fine|Warn|Fail)|merge)\(\s*"([^"]+)"|\bCheck: +"([^"]+)"`)},
}

// word is what may be one of the names on a page.
var word = regexp.MustCompile(`[\w+-]+`)

// checkManuals reports names that their page does not have.
func checkManuals(files *tree) (found []problem) {
	for _, m := range manuals {
		text := files.texts[m.page]
		has := map[string]bool{}
		for _, w := range word.FindAllString(text, -1) {
			has[w] = true
		}
		for _, file := range files.paths() {
			if text == "" || !m.files.MatchString(file) || strings.HasSuffix(file, "_test.go") {
				continue
			}
			for _, groups := range m.name.FindAllStringSubmatch(files.texts[file], -1) {
				name := strings.Join(groups[1:], "")
				// a check may be called by an everyday word
				if m.page == manual && !has[name] || m.page != manual && !strings.Contains(text, "`"+name+"`") {
					has[name] = true // once
					found = append(found, problem{m.page, 1, name + " of " + file + " is not explained"})
				}
			}
		}
	}
	return found
}
