package report

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/interlock-go/interlock/lab/internal/story"
)

// play opens a page with two stories, in English.
func play(t *testing.T, fragment string) *tab {
	t.Helper()
	chromium(t) // before anything is written
	file := filepath.Join(t.TempDir(), "lab.html")
	second := example()
	second.ID = "D1"
	w, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	bare := &story.Story{ID: "D2", Acts: []*story.Act{{Title: story.Same("without a step")}}}
	if err := Write(w, []*story.Story{example(), second, bare, {ID: "D3"}}, story.EN); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return openPage(t, file, fragment)
}

// curtain is where the picture of an act is hidden from, in its own measure.
func curtain(p *tab, act string) float64 {
	p.Helper()
	return eval[float64](p, `new DOMMatrix(document.querySelector("`+act+` .curtain").style.transform).e`)
}

func TestPlayer_Steps_ShowBothSidesAtTheSameEvents(t *testing.T) {
	p := play(t, "#D0")
	p.wants(".story h2", "D0 · a <title>")
	p.wants("#D0-1 .steps li")
	p.wants("#count", "0 / 6")
	p.press(kb.ArrowRight)
	p.wants("#D0-1 .steps li", "A: SET <k> A → OK 0")
	p.wants("#D0-2 .steps li", "A: Lock → held 0")
	p.wants("#D0-1 .now", "believing to hold it: A · Redis: A (10.0 s left)")
	p.wants("#D0-1 .lit .chip", "A")
	if line := eval[string](p, `document.querySelector("#D0-1 .lit").dataset.place`); line != "d03blinddel/lock.go:20" {
		t.Errorf("the line is %s", line)
	}
	if a, b := curtain(p, "#D0-1"), curtain(p, "#D0-2"); a < left || a > left+3*column || a != b {
		t.Errorf("the curtains are at %v and %v", a, b)
	}

	p.press(kb.ArrowRight, kb.ArrowRight, kb.ArrowRight) // B gets in on both sides by the same move
	p.wants("#D0-1 .steps .current", "B: SET <k> B → OK 2 ms")
	p.wants("#D0-2 .steps .current", "B: Lock → held 6 s")
	p.press(kb.ArrowLeft)
	p.wants("#D0-1 .steps .current", "time passes 1 ms")
	p.wants("#D0-2 .steps .current", "B: waits 3 s")
	p.wants("#D0-2 .now", "stopped while holding it: A · waiting: B · Redis: A (3.0 s left)")
	p.press(kb.End)
	if a := curtain(p, "#D0-1"); a < 1000 {
		t.Errorf("at the end the curtain is at %v", a)
	}
	p.wants("#count", "6 / 6")
	p.press(kb.Home)
	p.wants("#count", "0 / 6")
}

func TestPlayer_AtAnAddressWithoutAScene_ShowsTheFirst(t *testing.T) {
	for _, fragment := range []string{"", "#", "#D0", "#D0.", "#D0.0", "#nothing"} {
		p := play(t, fragment)
		p.wants(".story h2", "D0 · a <title>")
		p.wants("#count", "0 / 6")
	}
}

func TestPlayer_Asks_AndJudgesTheGuess(t *testing.T) {
	p := play(t, "#D0")
	p.press(kb.ArrowRight, kb.ArrowRight)
	p.wants("#D0-1 .ask strong", "Who gets in next?")
	p.wants("#D0-1 .ask button", "1B", "2C", "0nobody")
	p.wants("#D0-2 .ask button", "1B", "0nobody")
	p.press("2", "1") // C on the left, then B on the right
	p.wants(".ask strong")
	p.wants(".act.on .guessed", "Your guess: C.", "Your guess: B.")
	p.press(kb.ArrowRight, kb.ArrowRight)
	p.wants(".guessed.wrong", "Not C. It is B.")
	p.wants(".guessed.right", "Right. It is B.")
	p.press(kb.Home, kb.ArrowRight, kb.ArrowRight)
	p.wants(".ask strong") // it was answered

	p.press("n", kb.ArrowRight, kb.ArrowRight)
	p.wants("#D1-1 .ask strong", "Who gets in next?")
	p.click(`#D1-2 .ask button[data-answer=""]`)
	p.wants("#D1-2 .guessed", "Your guess: nobody.")
	p.press(kb.ArrowRight, kb.ArrowRight) // the other question is passed over
	p.wants("#D1-1 .guessed")
	p.wants("#D1-2 .guessed.wrong", "Not nobody. It is B.")
	p.press("g")
	p.wants(".guessed")
}

func TestPlayer_Plays_AndStopsForAQuestion(t *testing.T) {
	p := play(t, "#D0")
	eval[string](p, `document.getElementById("pace").value = "250"`)
	p.press(" ")
	p.until(`!document.querySelector("#D0-1 .ask").hidden`)
	eval[any](p, `setTimeout(() => document.body.classList.add("later"), 800)`) // three times the pace
	p.until(`document.body.classList.contains("later")`)
	p.wants("#count", "2 / 6")
	p.press("1", "1")
	p.until(`document.getElementById("count").textContent === "6 / 6"`)
	p.wants("#D0-1 .guessed", "Right. It is B.")
	if playing := eval[string](p, `document.getElementById("controls").dataset.playing`); playing != "false" {
		t.Errorf("at the end data-playing is %s", playing)
	}
}

func TestPlayer_Scrub_Address_AndScenes(t *testing.T) {
	p := play(t, "#D1.1")
	p.wants(".story h2", "D1 · a <title>")
	p.wants("nav a[aria-current]", "D1 a <title>")
	eval[bool](p, `(scrub => {
		scrub.value = 4;
		return scrub.dispatchEvent(new Event("input"));
	})(document.getElementById("scrub"))`)
	p.wants("#count", "4 / 6")
	if says := eval[string](p, `document.getElementById("scrub").getAttribute("aria-valuetext")`); says != "4 of 6" {
		t.Errorf("the slider says %q", says)
	}
	eval[any](p, `(svg => { // on the number of the second step of the left act
		const box = svg.getBoundingClientRect();
		const x = svg.querySelectorAll(".step")[1].dataset.x * box.width / svg.viewBox.baseVal.width;
		svg.dispatchEvent(new MouseEvent("click", {bubbles: true, clientX: box.left + x, clientY: box.top + 50}));
	})(document.querySelector("#D1-1 .act-picture"))`)
	p.wants("#count", "2 / 6")
	p.must(chromedp.Do(p.ctx, chromedp.EmulateViewport(420, 900)))
	p.press(kb.End)
	if scrolled := eval[float64](p, `document.querySelector("#D1-1 .picture").scrollLeft`); scrolled < 100 {
		t.Errorf("on a narrow screen the picture is scrolled by %v", scrolled)
	}
	p.press("n")
	p.wants("#count", "0 / 0")
	p.press("n", kb.ArrowRight, " ", "p", "p")
	p.wants(".story h2", "D0 · a <title>")
	if hash := eval[string](p, "location.hash"); hash != "#D0.1" {
		t.Errorf("the address ends in %s", hash)
	}
}

func TestPlayer_Languages_AndPrint(t *testing.T) {
	p := play(t, "#D0")
	p.press(kb.ArrowRight, kb.ArrowRight)
	p.click(`label[for="zh"]`)
	p.wants("#D0-1 .steps .current", "时间流逝 1 ms")
	p.wants("#D0-1 .ask strong", "下一个进来的是谁？")
	if lang := eval[string](p, "document.documentElement.lang"); lang != "zh-CN" {
		t.Errorf("the page's language is %s", lang)
	}
	if label := eval[string](p, `document.querySelector("nav").getAttribute("aria-label")`); label != "实验" {
		t.Errorf("the list of experiments is labelled %s", label)
	}
	says := eval[string](p, `document.getElementById("live").textContent`)
	if !strings.Contains(says, "下一个进来的是谁？ 1: B, 2: C, 0: 没有人") {
		t.Errorf("a screen reader is told %s", says)
	}
	p.media("print")
	if n := len(p.shown(".story.on .steps li")); n != 10 {
		t.Errorf("%d steps are printed, not all 10", n)
	}
	p.wants(".controls, .ask, nav, .curtain")
	p.wants(".story h2", "D0 · 标题")
}

var screenshots = flag.Bool("screenshots", false, "make the picture of docs/lab.md")

// published is the page in the documentation.
var published = filepath.Join("..", "..", "..", "docs", "lab", "index.html")

func TestPublishedPage_HasTheCurrentPlayer(t *testing.T) {
	html, err := os.ReadFile(published)
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{style, script} {
		if !strings.Contains(string(html), part) {
			t.Error("docs/lab/index.html has an older player; make it again as docs/lab.md says")
		}
	}
}

func TestPublishedPage_Plays(t *testing.T) {
	chromium(t)
	file, err := filepath.Abs(published)
	if err != nil {
		t.Fatal(err)
	}
	p := openPage(t, file, "#D3.2")
	p.wants(".story h2", "D3 · SET NX EX, and a DEL that does not ask")
	for range 8 {
		p.press(kb.ArrowRight)
	}
	p.wants("#D3-1 .lit .chip", "A") // it has sent DEL
	if !*screenshots {
		return
	}
	eval[any](p, `document.head.append(make("style", {}, "* { transition: none !important }"))`)
	png, err := chromedp.Run(p.ctx, chromedp.Screenshot(chromedp.CSS(".story.on .acts")))
	p.must(err)
	p.must(os.WriteFile(filepath.Join(filepath.Dir(file), "page.png"), png, 0o644))
}
