package report

import (
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/lab/internal/story"
)

func TestAlign_WaitsForWhatHappensOnBothSides(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want [][2]int
	}{
		{"A B", "A B", [][2]int{{0, 0}, {1, 1}}},
		{"A . . B", "A B", [][2]int{{0, 0}, {1, 0}, {2, 0}, {3, 1}}},
		{"A B", ". A . . B .", [][2]int{{-1, 0}, {0, 1}, {0, 2}, {0, 3}, {1, 4}, {1, 5}}},
		{". .", ". . .", [][2]int{{0, 0}, {1, 1}, {1, 2}}},
		{"", "A", [][2]int{{-1, 0}}},
	} {
		a, b := strings.Fields(c.a), strings.Fields(c.b)
		for _, side := range [][]string{a, b} {
			for i := range side {
				side[i] = strings.Trim(side[i], ".")
			}
		}
		if got := align(a, b); !slices.Equal(got, c.want) {
			t.Errorf("%q beside %q: %v, want %v", c.a, c.b, got, c.want)
		}
	}
}

func TestPairs_PutEveryActBesideTheOneThatItAnswers(t *testing.T) {
	exhibit := func(title string) *story.Act { return &story.Act{Title: story.Same(title)} }
	answer := func(title string, to ...int) *story.Act {
		return &story.Act{Title: story.Same(title), Sound: true, Answers: to}
	}
	for name, c := range map[string]struct {
		acts []*story.Act
		want [][2]int
	}{
		"by place": {[]*story.Act{exhibit("a"), exhibit("b"), answer("x"), answer("y")}, [][2]int{{0, 2}, {1, 3}}},
		"by title": {
			[]*story.Act{exhibit("A jump"), exhibit("a pause"), answer("a pause, fenced"), answer("a jump, fenced")},
			[][2]int{{0, 3}, {1, 2}},
		},
		"by number": {
			[]*story.Act{exhibit("a"), exhibit("b"), answer("x", 1, 2), answer("y", 2)},
			[][2]int{{0, 2}, {1, 2}, {1, 3}},
		},
		"one for two":     {[]*story.Act{exhibit("a"), exhibit("b"), answer("x")}, [][2]int{{0, 2}, {1, 2}}},
		"two for one":     {[]*story.Act{exhibit("a"), answer("x"), answer("y")}, [][2]int{{0, 1}, {0, 2}}},
		"only exhibits":   {[]*story.Act{exhibit("a")}, [][2]int{{0, -1}}},
		"only the sound":  {[]*story.Act{answer("x")}, [][2]int{{-1, 0}}},
		"a wrong number":  {[]*story.Act{exhibit("a"), answer("x", 7)}, [][2]int{{0, 1}}},
		"nothing to show": {nil, nil},
	} {
		var got [][2]int
		for _, p := range pairs(&story.Story{Acts: c.acts}) {
			got = append(got, [2]int{p.Exhibit, p.Sound})
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

func TestPairs_AlignGrantsAndStops(t *testing.T) {
	got := pairs(example())[0].Rows
	if want := [][2]int{{0, 0}, {1, 1}, {1, 2}, {2, 3}, {3, 3}, {4, 4}}; !slices.Equal(got, want) {
		t.Errorf("the rows are %v, want %v", got, want)
	}
}

func TestQuestions_AreAskedWhenSomebodyMayGetIn(t *testing.T) {
	for name, c := range map[string]struct {
		act  *story.Act
		want []question
	}{
		"after fate":   {flawed(), []question{{After: 1, Options: []string{"B", "C"}, Answer: "B", Reveal: 2}}},
		"after a stop": {sound(), []question{{After: 1, Options: []string{"B"}, Answer: "B", Reveal: 3}}},
		"nobody": {&story.Act{Cast: []string{"A", "B"}, Steps: []story.Step{
			{States: standings("A", "holds")}, {States: standings("A", "dead")}, {States: standings("A", "dead")},
		}}, []question{{After: 1, Options: []string{"B"}, Answer: "", Reveal: 2}}},
		"who goes on has not got in": {&story.Act{Cast: []string{"A", "B"}, Steps: []story.Step{
			{States: standings("A", "holds")}, {States: standings("A", "still")}, {States: standings("A", "holds")},
		}}, []question{{After: 1, Options: []string{"B"}, Answer: "", Reveal: 2}}},
		"one after the other": {&story.Act{Cast: []string{"A", "B"}, Steps: []story.Step{
			{States: standings("A", "holds")},
			{States: standings()},
			{States: standings("B", "holds"), Kind: story.Fate},
			{States: standings("B", "holds", "A", "holds")},
		}}, []question{
			{After: 1, Options: []string{"A", "B"}, Answer: "B", Reveal: 2},
			{After: 2, Options: []string{"A"}, Answer: "A", Reveal: 3},
		}},
		"no act": {&story.Act{}, nil},
	} {
		if got := questions(c.act); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

func TestListings_AreTheExhibitsCodeWithoutItsHead(t *testing.T) {
	all := listings(flawed())
	if len(all) != 2 || all[0].Name != "d03blinddel/lock.go" || all[1].Name != "d03blinddel/printed.go" {
		t.Fatalf("the listings are %+v", all)
	}
	first, has := all[0].Lines[0], false
	for _, l := range all[0].Lines {
		has = has || strings.Contains(l.Text, `"DEL"`) && l.Place == "d03blinddel/lock.go:25"
	}
	if !strings.HasPrefix(first.Text, "// Lock is") || !has {
		t.Errorf("it begins with %+v; DEL is at its line: %v", first, has)
	}
}

func TestWrite_HasTheWireInTheTextOnly(t *testing.T) {
	s := example()
	s.Acts[1].Unsaid = 3
	s.Acts[1].Wire = []*story.Wire{
		{At: 9 * time.Second, Who: "A", To: "Redis", Text: "EVALSHA <acquire>", Answer: "G"},
		{At: 16 * time.Second, Who: "B", To: "node 1", Push: true, Text: "message"},
	}
	var b strings.Builder
	if err := Write(&b, []*story.Story{s}, story.EN); err != nil {
		t.Fatal(err)
	}
	for part, n := range map[string]int{
		` · 2 + 3</summary>`: 1, `<details class="help wire">`: 1,
		`<span class="line">A → Redis: EVALSHA &lt;acquire&gt;  →  G <time>0</time></span>`:                      1,
		`<span lang="en">B ← node 1: message</span><span lang="zh-CN">B ← 节点 1: message</span> <time>6 s</time>`: 1,
		`"wire"`: 0, `"unsaid"`: 0,
	} {
		if got := strings.Count(b.String(), part); got != n {
			t.Errorf("the page has %d times %s, want %d", got, part, n)
		}
	}
	if len(s.Acts[1].Wire) != 2 {
		t.Error("the story has lost its wire")
	}
}

func TestWrite_IsOnePage_InBothLanguages(t *testing.T) {
	var b strings.Builder
	if err := Write(&b, []*story.Story{example()}, story.ZH); err != nil {
		t.Fatal(err)
	}
	page := b.String()
	for _, part := range []string{
		`<html lang="zh-CN">`, `<span lang="en">a &lt;title&gt;</span><span lang="zh-CN">标题</span>`,
		`<li class="asks">A: SET &lt;k&gt; A  →  OK <time>0</time></li>`, `id="zh" checked`, `<rect class="clash"`,
		`<path class="stopped"`, `<polygon class="lease"`, `data-place="d03blinddel/lock.go:25"`,
		`"pairs":[{"exhibit":0,"sound":1,"rows":[[0,0],`, `"text":{"en":"time passes","zh":"时间流逝"}`,
	} {
		if !strings.Contains(page, part) {
			t.Errorf("the page has no %s", part)
		}
	}
	if found := regexp.MustCompile(`https?:|src=|<link|@import|url\([^#]|fetch\(`).FindString(page); found != "" {
		t.Errorf("the page needs something else than itself: %s", found)
	}
	if err := Write(&b, nil, story.EN); err != nil {
		t.Errorf("without stories: %v", err)
	}
}
