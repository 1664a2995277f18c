package main

import (
	"path"
	"regexp"
	"strings"
)

// commandPage is the command's manual in Chinese. It has no English twin: that is what the command's help says.
const commandPage = "docs/command.zh-CN.md"

// helpTexts are the golden files of the command's help: help.golden, and help-NAME.golden for each command and topic.
const helpTexts = "cmd/interlock/testdata/help*.golden"

// helpWord is what the help explains: a flag, a command, an exit code, or a variable of the environment.
var helpWord = regexp.MustCompile(
	`(?m)^ +(?:-\w, )?(--[a-z][a-z-]*) |^  ([a-z]+) +[A-Z]|^  (\d+(?:-\d+|\+n)?) |^  ([A-Z]+_[A-Z_]+) `)

// helpOf finds the command in a golden file of help: of "serve terraform" it is serve.
var helpOf = regexp.MustCompile(`/help-([a-z]+)[a-z-]*\.golden$`)

// pageWord is a word that may be one of these.
var pageWord = regexp.MustCompile(`[\w+-]+`)

// checkCommandPage reports what the help explains and the Chinese manual does not. A flag is explained only in a
// chapter that names its command: many commands have a --wait, and not all mean the same by it.
func checkCommandPage(files *tree) []problem {
	text, ok := files.texts[commandPage]
	if !ok {
		return nil
	}
	var chapters []map[string]bool
	for chapter := range strings.SplitSeq(text, "\n## ") {
		chapters = append(chapters, wordsOf(chapter))
	}
	all := wordsOf(text)
	var found []problem
	for _, name := range files.paths() {
		if is, _ := path.Match(helpTexts, name); !is {
			continue
		}
		named := all
		if of := helpOf.FindStringSubmatch(name); len(of) > 1 && all[of[1]] {
			named = wordsBeside(of[1], chapters)
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

// wordsOf are the words of a text.
func wordsOf(text string) map[string]bool {
	words := map[string]bool{}
	for _, word := range pageWord.FindAllString(text, -1) {
		words[word] = true
	}
	return words
}

// wordsBeside are the words of the chapters that name the command.
func wordsBeside(command string, chapters []map[string]bool) map[string]bool {
	words := map[string]bool{}
	for _, chapter := range chapters {
		for word := range chapter {
			if chapter[command] {
				words[word] = true
			}
		}
	}
	return words
}
