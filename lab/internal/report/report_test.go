package report

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/lab/internal/story"
)

func states(who ...string) map[string]story.State {
	all := map[string]story.State{}
	for _, name := range who {
		all[name] = story.Holds
	}
	return all
}

func example() *story.Act {
	return &story.Act{
		Title: story.T("an act", "一幕"), Cast: []string{"A", "B"}, Keys: []string{"Redis"},
		Steps: []story.Step{
			{Who: "A", Kind: story.Asks, Text: story.Same("SET <k> 1"), States: states("A"), Held: []string{"A"}},
			{Kind: story.Fate, Text: story.T("time passes", "时间流逝"), States: states("A"), Held: []string{""}},
			{Who: "B", Kind: story.Says, Text: story.T("is in", "进来了"), States: states("A", "B"), Held: []string{"B"}},
			{Kind: story.Clash, Text: story.T("two", "两个"), States: states("A", "B"), Held: []string{"B"}},
		},
	}
}

func TestDraw_HasABarForEachRunOfSteps(t *testing.T) {
	p := draw(example())
	bars := func(row int) []span { return p.Rows[row].Bars }
	for name, c := range map[string]struct{ got, want []span }{
		"A": {bars(0), []span{{X: left, Width: 4 * column, Class: "holds"}}},
		"B": {bars(1), []span{{X: left + 2*column, Width: 2 * column, Class: "holds"}}},
		"Redis": {bars(2), []span{
			{X: left, Width: column, Class: "server", Label: "A"},
			{X: left + 2*column, Width: 2 * column, Class: "server", Label: "B"},
		}},
		"clashes": {p.Clashes, []span{{X: left + 2*column, Width: 2 * column, Class: "clash"}}},
	} {
		if !slices.Equal(c.got, c.want) {
			t.Errorf("%s: %+v, want %+v", name, c.got, c.want)
		}
	}
}

func TestWrite_IsOnePage_InBothLanguages(t *testing.T) {
	s := &story.Story{
		ID: "D0", Title: story.T("a <title>", "标题"), About: story.T("about", "说明"), Acts: []*story.Act{example()},
	}
	var b strings.Builder
	if err := Write(&b, []*story.Story{s}, story.ZH); err != nil {
		t.Fatal(err)
	}
	page := b.String()
	for _, part := range []string{
		`<span lang="en">a &lt;title&gt;</span><span lang="zh-CN">标题</span>`,
		`<li class="asks">A: SET &lt;k&gt; 1 <time>0.000 s</time></li>`, `id="zh" checked`, `<rect class="clash"`,
	} {
		if !strings.Contains(page, part) {
			t.Errorf("the page has no %s", part)
		}
	}
	if found := regexp.MustCompile(`https?:|src=|<script|<link|@import|url\([^#]`).FindString(page); found != "" {
		t.Errorf("the page needs something else than itself: %s", found)
	}
}
