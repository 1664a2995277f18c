package main

import (
	"flag"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/interlock-go/interlock/lab/internal/story"
)

// helpNames are the flags, commands, exit codes and values of a help: all that is not in a language.
var helpNames = regexp.MustCompile(
	`(?m)^  interlock lab( [a-z]+)?|--?[a-z]+\b|\b[A-Z]{4,}\b|\bD\d+\b|\b(?:en|zh|text|json)\b|^  \d+|\d[\d.:]+\d`)

func TestHelp_NamesTheSameInBothLanguages(t *testing.T) {
	for topic, text := range helpTexts {
		en, zh := helpNames.FindAllString(text.EN, -1), helpNames.FindAllString(text.ZH, -1)
		slices.Sort(en)
		slices.Sort(zh)
		if en, zh = slices.Compact(en), slices.Compact(zh); !slices.Equal(en, zh) {
			t.Errorf("help of %q: English names %q, Chinese %q", topic, en, zh)
		}
	}
}

func TestHelp_NamesEveryFlagAndCommand(t *testing.T) {
	flags := newFlags(&settings{}, func(string) string { return "" })
	flags.VisitAll(func(f *flag.Flag) {
		name := "--" + f.Name
		if len(f.Name) == 1 {
			name = "-" + f.Name
		}
		if !regexp.MustCompile(`(?m)^  (?:-h, )?` + name + `\b`).MatchString(labHelp.EN) {
			t.Errorf("the help has no %s", name)
		}
	})
	for topic := range helpTexts {
		if !strings.Contains(labHelp.EN, "\n  interlock lab "+topic) {
			t.Errorf("the help has no %s", topic)
		}
	}
}

func TestHelp_IsInTheLanguageAskedFor(t *testing.T) {
	chinese := map[string]string{"LANG": "zh_CN.UTF-8"}
	for args, want := range map[string]story.Text{
		"--help":           labHelp,
		"-h":               labHelp,
		"help":             labHelp,
		"search --help":    searchHelp,
		"help search":      searchHelp,
		"--help serve":     serveHelp,
		"serve D3 -h":      serveHelp, // whoever asks for help is not told what is wrong
		"D4 --report x -h": labHelp,
		"--all D3 --help":  labHelp,
	} {
		for _, c := range []struct {
			args string
			env  map[string]string
			lang story.Lang
		}{
			{args, nil, story.EN},
			{args + " --lang zh", nil, story.ZH},
			{"--lang zh " + args, nil, story.ZH},
			{args, chinese, story.ZH},
			{args + " --lang en", chinese, story.EN},
		} {
			code, out, words := lab(t, c.env, strings.Fields(c.args)...)
			if code != exitOK || out != want.In(c.lang) || words != "" {
				t.Errorf("%s: exit %d, stdout\n%s\nstderr %q", c.args, code, out, words)
			}
		}
	}
}

func TestLab_WithoutArguments_PointsAtTheHelp(t *testing.T) {
	for lang, chinese := range map[string]bool{"en": false, "zh": true} {
		_, _, words := lab(t, nil, "--lang", lang)
		has := strings.ContainsFunc(words, func(r rune) bool { return unicode.Is(unicode.Han, r) })
		if has != chinese || !strings.Contains(words, "interlock lab --help") {
			t.Errorf("%s: stderr\n%s", lang, words)
		}
	}
}
