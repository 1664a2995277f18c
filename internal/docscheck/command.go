package main

import (
	"path"
	"regexp"
	"strings"
)

// commandPage is the command's manual in Chinese. It has no English twin: that is what the command's help says.
const commandPage = "docs/command.zh-CN.md"

// helpTexts are the golden files of the command's help.
const helpTexts = "cmd/interlock/testdata/help*.golden"

// helpWord is what the help explains: a flag, a command, an exit code, or a variable of the environment.
var helpWord = regexp.MustCompile(
	`(?m)^ +(?:-\w, )?(--[a-z][a-z-]*) |^  ([a-z]+) +[A-Z]|^  (\d+(?:-\d+|\+n)?) |^  ([A-Z]+_[A-Z_]+) `)

// pageWord is a word that may be one of these.
var pageWord = regexp.MustCompile(`[\w+-]+`)

// checkCommandPage reports what the help explains and the Chinese manual does not name.
func checkCommandPage(files *tree) []problem {
	text, ok := files.texts[commandPage]
	if !ok {
		return nil
	}
	named := map[string]bool{}
	for _, word := range pageWord.FindAllString(text, -1) {
		named[word] = true
	}
	var found []problem
	for _, name := range files.paths() {
		if is, _ := path.Match(helpTexts, name); !is {
			continue
		}
		for _, groups := range helpWord.FindAllStringSubmatch(files.texts[name], -1) {
			if word := strings.Join(groups[1:], ""); !named[word] {
				named[word] = true // once
				found = append(found, problem{commandPage, 1, word + " of " + name + " is not explained"})
			}
		}
	}
	return found
}
