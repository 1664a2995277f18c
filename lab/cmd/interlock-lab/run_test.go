package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/lab/internal/play"
	"github.com/interlock-go/interlock/lab/internal/story"
)

func TestMain(m *testing.M) {
	play.ServeIfProcess()
	os.Exit(m.Run())
}

// lab runs the command and returns its exit code and what it wrote.
func lab(t *testing.T, env map[string]string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, words bytes.Buffer
	code = run(t.Context(), args, &out, &words, func(name string) string { return env[name] })
	return code, out.String(), words.String()
}

func TestLab_WithoutArguments_ListsTheExperiments(t *testing.T) {
	for lang, title := range map[string]string{"en": "SETNX and DEL", "zh": "SETNX 加 DEL"} {
		code, out, _ := lab(t, nil, "--lang", lang)
		if n := strings.Count(out, "\n"); code != exitOK || n != 17 || !strings.Contains(out, "D1   "+title) {
			t.Errorf("%s: exit %d and\n%s", lang, code, out)
		}
	}
	if _, out, _ := lab(t, map[string]string{"LANG": "zh_CN.UTF-8"}); !strings.Contains(out, "SETNX 加 DEL") {
		t.Errorf("a Chinese environment lists\n%s", out)
	}
}

func TestLab_WrongUse_SaysWhatToDo(t *testing.T) {
	for _, c := range []struct{ args, says string }{
		{"D99", `there is no experiment "D99"; "interlock lab" lists them`},
		{"--lang fr", `there is no language "fr"; there are en and zh`},
		{"-o xml", `-o is text or json, not "xml"`},
		{"--all D3", "--all runs every experiment; leave out D3"},
		{"--report x.html", "--report wants experiments to run"},
		{"search D9", `there is no search of "D9"; there are D1 to D6`},
		{"serve D3", "serve has all exhibits on its page; leave out D3"},
		{"serve --listen 0.0.0.0:0", "no loopback address"},
		{"--nonsense", "flag provided but not defined"},
		{"D99 --lang zh", `没有实验 "D99"；interlock lab 会列出所有实验`},
		{"--lang zh serve D3", "serve 的网页包含所有展品，请去掉 D3"},
	} {
		code, out, words := lab(t, nil, strings.Fields(c.args)...)
		if code != exitUsage || out != "" || !strings.Contains(words, c.says) {
			t.Errorf("%s: exit %d, stdout %q, stderr %q; want %d and %q", c.args, code, out, words, exitUsage, c.says)
		}
	}
}

func TestLab_RunsOne_AndWritesThePage(t *testing.T) {
	page := filepath.Join(t.TempDir(), "lab.html")
	code, out, words := lab(t, nil, "d4", "--report", page)
	if code != exitOK || !strings.HasPrefix(out, "D4   ") || !strings.Contains(out, "shown as expected") {
		t.Fatalf("exit %d, stdout %q, stderr %q", code, out, words)
	}
	html, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{`id="D4"`, "A has deleted B&#39;s lock", "A 明明先看过", `<rect class="clash"`} {
		if !strings.Contains(string(html), part) {
			t.Errorf("the page has no %s", part)
		}
	}
}

func TestLab_Wire_TellsWhatWasSent(t *testing.T) {
	code, out, words := lab(t, nil, "--wire", "--lang", "zh", "D4")
	if code != exitOK || !strings.Contains(out, "|  A → Redis: ") || !strings.Contains(out, "interlock:mutex:stock") ||
		strings.Contains(out, "redis.call('TIME')") {
		t.Errorf("exit %d, stdout %s, stderr %q", code, out, words)
	}
}

func TestLab_Search_TellsWhatItFinds(t *testing.T) {
	code, out, words := lab(t, nil, "search", "d5")
	if code != exitOK {
		t.Fatalf("exit %d, stderr %q", code, words)
	}
	for _, part := range []string{
		"D5a  ", "D5b  ", "None: a lock that never opens again.", "One has overrun its lease",
	} {
		if !strings.Contains(out, part) {
			t.Errorf("it does not tell %q:\n%s", part, out)
		}
	}
}

func TestLab_JSON_HasTheSteps(t *testing.T) {
	code, out, words := lab(t, nil, "-o", "json", "D8")
	var stories []struct {
		ID   string
		Acts []struct {
			Steps []struct {
				Kind story.Kind
				Text struct{ EN, ZH string }
			}
		}
	}
	if err := json.Unmarshal([]byte(out), &stories); err != nil || code != exitOK {
		t.Fatalf("exit %d, %v, stderr %q", code, err, words)
	}
	if len(stories) != 1 || stories[0].ID != "D8" || len(stories[0].Acts) != 13 {
		t.Fatalf("it says %+v", stories)
	}
	if s := stories[0].Acts[0].Steps[0]; s.Kind != story.Asks || s.Text.EN != s.Text.ZH || s.Text.EN == "" {
		t.Errorf("its first step is %+v", s)
	}
}

func TestLab_WithoutServers_SaysWhatToInstall(t *testing.T) {
	t.Setenv("PATH", "")
	t.Setenv("INTERLOCK_REQUIRE", "")
	code, out, words := lab(t, nil, "D1")
	if code != exitMissing || out != "" || !strings.Contains(words, "redis-server") ||
		!strings.Contains(words, "install") {
		t.Errorf("exit %d, stdout %q, stderr %q; want %d", code, out, words, exitMissing)
	}
}
