package main

import (
	"errors"
	"flag"
	"io"
	"strings"

	"github.com/interlock-go/interlock/lab/internal/experiment"
	"github.com/interlock-go/interlock/lab/internal/search"
	"github.com/interlock-go/interlock/lab/internal/story"
)

// settings are what the arguments say.
type settings struct {
	help   bool // print the help of topic, and nothing else
	topic  string
	chosen []*experiment.Experiment
	search bool // look for schedules that fail, instead of running experiments
	sought []*search.Exhibit
	serve  bool // the page on which readers break locks themselves
	listen string
	list   bool
	lang   story.Lang
	form   string // text or json
	json   bool
	all    bool
	wire   bool
	report string
}

// newFlags are the flags of the command, which write into s.
func newFlags(s *settings, getenv func(string) string) *flag.FlagSet {
	flags := flag.NewFlagSet("lab", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // the caller prints the error
	flags.Usage = func() {}
	// Help flags of our own: the package would print at once, before it has read a --lang that follows.
	flags.BoolVar(&s.help, "help", false, "print the help")
	flags.BoolVar(&s.help, "h", false, "print the help")
	flags.BoolVar(&s.all, "all", false, "run all experiments")
	flags.StringVar((*string)(&s.lang), "lang", languageOf(getenv), "en or zh")
	flags.StringVar(&s.form, "o", "text", "text or json")
	flags.BoolVar(&s.wire, "wire", false, "tell what interlock's clients sent, with the answers")
	flags.StringVar(&s.report, "report", "", "write a page of HTML to this file")
	flags.StringVar(&s.listen, "listen", "127.0.0.1:0", "the loopback address of the page")
	return flags
}

func parse(args []string, getenv func(string) string) (*settings, error) {
	s := &settings{}
	flags := newFlags(s, getenv)
	var ids []string
	for len(args) > 0 { // flags may stand before and after what they are for
		if err := flags.Parse(args); err != nil {
			return nil, err
		}
		if args = flags.Args(); len(args) > 0 {
			ids = append(ids, args[0])
			args = args[1:]
		}
	}
	if len(ids) > 0 && ids[0] == "help" {
		s.help, ids = true, ids[1:]
	}
	if len(ids) > 0 && (ids[0] == "search" || ids[0] == "serve") {
		s.topic, s.search, s.serve, ids = ids[0], ids[0] == "search", ids[0] == "serve", ids[1:]
	}
	s.json = s.form == "json"
	switch {
	case s.lang != story.EN && s.lang != story.ZH:
		return nil, s.wrong("there is no language %q; there are en and zh", "没有语言 %q，只有 en 和 zh", s.lang)
	case !s.json && s.form != "text":
		return nil, s.wrong("-o is text or json, not %q", "-o 只能是 text 或 json，不能是 %q", s.form)
	case s.help:
		return s, nil
	case s.search:
		return s, s.seek(ids)
	case s.serve && len(ids) > 0:
		return nil, s.wrong("serve has all exhibits on its page; leave out %s", "serve 的网页包含所有展品，请去掉 %s",
			strings.Join(ids, " "))
	case s.serve:
		return s, nil
	case s.all && len(ids) > 0:
		return nil, s.wrong("--all runs every experiment; leave out %s", "--all 会运行所有实验，请去掉 %s",
			strings.Join(ids, " "))
	case s.report != "" && !s.all && len(ids) == 0:
		return nil, s.wrong("--report wants experiments to run: name some, or say --all",
			"--report 需要有实验可运行：请指定实验，或使用 --all")
	}
	s.list = !s.all && len(ids) == 0
	return s, s.choose(ids)
}

// wrong is an error of wrong use, in the language asked for.
func (s *settings) wrong(en, zh string, args ...any) error {
	return errors.New(story.T(en, zh, args...).In(s.lang))
}

// choose finds the experiments; no ids are all of them.
func (s *settings) choose(ids []string) error {
	if len(ids) == 0 {
		s.chosen = experiment.All()
	}
	for _, id := range ids {
		e := experiment.Find(id)
		if e == nil {
			return s.wrong("there is no experiment %q; \"interlock lab\" lists them", "没有实验 %q；interlock lab 会列出所有实验",
				id)
		}
		s.chosen = append(s.chosen, e)
	}
	return nil
}

// seek finds the exhibits to search; no ids are all of them.
func (s *settings) seek(ids []string) error {
	if len(ids) == 0 {
		s.sought = search.All()
	}
	for _, id := range ids {
		found := search.Find(id)
		if len(found) == 0 {
			return s.wrong("there is no search of %q; there are D1 to D6", "没有对 %q 的搜索，只有 D1 到 D6", id)
		}
		s.sought = append(s.sought, found...)
	}
	return nil
}

// tasks are what runs.
func (s *settings) tasks() []task {
	var all []task
	for _, e := range s.sought {
		all = append(all, task{e.ID, e.Title, e.Run})
	}
	for _, e := range s.chosen {
		all = append(all, task{e.ID, e.Title, e.Run})
	}
	return all
}

// languageOf is the language of the environment, if it is one of the lab's.
func languageOf(getenv func(string) string) string {
	for _, name := range []string{"LC_ALL", "LC_MESSAGES", "LANG"} {
		if value := getenv(name); value != "" {
			if strings.HasPrefix(value, "zh") {
				return string(story.ZH)
			}
			return string(story.EN)
		}
	}
	return string(story.EN)
}
