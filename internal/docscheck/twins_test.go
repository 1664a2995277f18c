package main

import (
	"strings"
	"testing"
)

func TestRun_ComparesEveryPageWithItsChineseTwin(t *testing.T) {
	page := "# A\n[English](b.md) [中文](b.zh-CN.md)\n## B\n\n```sh\nx\n```\n\n| a |\n|---|\n"
	replaced := func(old, with string) string { return strings.Replace(page, old, with, 1) }
	for name, tt := range map[string]struct{ english, chinese, want string }{
		"the same":       {page, page, ""},
		"no twin":        {page, "", "docs/b.md:2: link b.zh-CN.md: there is no docs/b.zh-CN.md"},
		"no English":     {"", page, "docs/b.zh-CN.md:1: there is no docs/b.md"},
		"a heading less": {page, replaced("## B", "B"), "docs/b.zh-CN.md:5: something else than in docs/b.md:3"},
		"other code":     {page, replaced("x\n", "y\n"), "docs/b.zh-CN.md:5: something else than in docs/b.md:5"},
		"a row more":     {page, page + "| b |\n", "docs/b.zh-CN.md:11: no counterpart in docs/b.md"},
		"no link":        {replaced("(b.zh-CN.md)", ""), page, "docs/b.md:1: no link to docs/b.zh-CN.md"},
		"no link back":   {page, replaced("(b.md)", ""), "docs/b.zh-CN.md:1: no link to docs/b.md"},
		"no Chinese":     {"# B\n", "", ""},
		"output in its own language": {
			page + "<!-- code: x_test.go 1-1 -->\n```text\npackage x\n```\n",
			page + "<!-- code: x_test.go 4-4 -->\n```text\n\ta := 1\n```\n", "",
		},
		"output that nothing holds": {
			page + "```text\npackage x\n```\n", page + "```text\n\ta := 1\n```\n",
			"something else than in docs/b.md",
		},
	} {
		t.Run(name, func(t *testing.T) {
			rc, out := check(good(map[string]string{"docs/b.md": tt.english, "docs/b.zh-CN.md": tt.chinese}))
			if (rc != 0) != (tt.want != "") || !strings.Contains(out, tt.want) {
				t.Errorf("exit %d, want %q in:\n%s", rc, tt.want, out)
			}
		})
	}
}

func TestRun_WantsTheChineseManualToNameAllOfTheHelp(t *testing.T) {
	help := "Run jobs.\n\nJobs:\n  run         Run a command\n\nExit codes:\n  0-63   its own\n  128+n  a signal\n\n" +
		"  XDG_STATE_HOME  where\n\nFlags:\n  -w, --wait duration   how long\n      --no-wait         not\n"
	page := "# 命令\n\n`run`、`0-63`、`128+n`、`XDG_STATE_HOME`、`-w`、`--wait`、`--no-wait`\n"
	for _, word := range []string{"", "run", "0-63", "128+n", "XDG_STATE_HOME", "--wait", "--no-wait"} {
		rc, out := check(good(map[string]string{
			"cmd/interlock/testdata/help.golden": help,
			"docs/command.zh-CN.md":              strings.Replace(page, "`"+word+"`", "", 1),
		}))
		want := "docs/command.zh-CN.md:1: " + word + " of cmd/interlock/testdata/help.golden is not explained"
		if (rc != 0) != (word != "") || word != "" && !strings.Contains(out, want) {
			t.Errorf("without %q: exit %d:\n%s", word, rc, out)
		}
	}
}
