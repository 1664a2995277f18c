package report

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/interlock-go/interlock/internal/browser"
	"github.com/interlock-go/interlock/lab/internal/story"
)

// play opens a page with two stories, in English.
func play(t *testing.T, fragment string) *browser.Tab {
	t.Helper()
	browser.Path(t) // before anything is written
	file := filepath.Join(t.TempDir(), "lab.html")
	second := example()
	second.ID = "D1"
	second.Acts[0].Keys = []string{"node 1"}
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
func curtain(p *browser.Tab, act string) float64 {
	p.Helper()
	return eval[float64](p, `new DOMMatrix(document.querySelector("`+act+` .curtain").style.transform).e`)
}

func TestPlayer_Steps_ShowBothSidesAtTheSameEvents(t *testing.T) {
	p := play(t, "#D0")
	p.Wants(".story h2", "D0 · a <title>")
	p.Wants("#D0-1 .steps li")
	p.Wants("#count", "0 / 6")
	p.Press(kb.ArrowRight)
	p.Wants("#D0-1 .steps li", "A: SET <k> A → OK 0")
	p.Wants("#D0-2 .steps li", "A: Lock → held 0")
	p.Wants("#D0-1 .now", "believing to hold it: A · Redis: A (10.0 s left)")
	p.Wants("#D0-1 .lit .chip", "A")
	if line := eval[string](p, `document.querySelector("#D0-1 .lit").dataset.place`); line != "d03blinddel/lock.go:20" {
		t.Errorf("the line is %s", line)
	}
	if a, b := curtain(p, "#D0-1"), curtain(p, "#D0-2"); a < left || a > left+3*column || a != b {
		t.Errorf("the curtains are at %v and %v", a, b)
	}

	p.Press(kb.ArrowRight, kb.ArrowRight, kb.ArrowRight) // B gets in on both sides by the same move
	p.Wants("#D0-1 .steps .current", "B: SET <k> B → OK 2 ms")
	p.Wants("#D0-2 .steps .current", "B: Lock → held 6 s")
	p.Press(kb.ArrowLeft)
	p.Wants("#D0-1 .steps .current", "time passes 1 ms")
	p.Wants("#D0-2 .steps .current", "B: waits 3 s")
	p.Wants("#D0-2 .now", "stopped while holding it: A · waiting: B · Redis: A (3.0 s left)")
	p.Press(kb.End)
	if a := curtain(p, "#D0-1"); a < 1000 {
		t.Errorf("at the end the curtain is at %v", a)
	}
	p.Wants("#count", "6 / 6")
	p.Press(kb.Home)
	p.Wants("#count", "0 / 6")
}

func TestPlayer_AtAnAddressWithoutAScene_ShowsTheFirst(t *testing.T) {
	for _, fragment := range []string{"", "#", "#D0", "#D0.", "#D0.0", "#nothing"} {
		p := play(t, fragment)
		p.Wants(".story h2", "D0 · a <title>")
		p.Wants("#count", "0 / 6")
	}
}

func TestPlayer_Asks_AndJudgesTheGuess(t *testing.T) {
	p := play(t, "#D0")
	p.Press(kb.ArrowRight, kb.ArrowRight)
	p.Wants("#D0-1 .ask strong", "Who gets in next?")
	p.Wants("#D0-1 .ask button", "1B", "2C", "0nobody")
	p.Wants("#D0-2 .ask button", "1B", "0nobody")
	p.Press("2", "1") // C on the left, then B on the right
	p.Wants(".ask strong")
	p.Wants(".act.on .guessed", "Your guess: C.", "Your guess: B.")
	p.Press(kb.ArrowRight, kb.ArrowRight)
	p.Wants(".guessed.wrong", "Not C. It is B.")
	p.Wants(".guessed.right", "Right. It is B.")
	p.Press(kb.Home, kb.ArrowRight, kb.ArrowRight)
	p.Wants(".ask strong") // it was answered

	p.Press("n", kb.ArrowRight, kb.ArrowRight)
	p.Wants("#D1-1 .ask strong", "Who gets in next?")
	p.Click(`#D1-2 .ask button[data-answer=""]`)
	p.Wants("#D1-2 .guessed", "Your guess: nobody.")
	p.Press(kb.ArrowRight, kb.ArrowRight) // the other question is passed over
	p.Wants("#D1-1 .guessed")
	p.Wants("#D1-2 .guessed.wrong", "Not nobody. It is B.")
	p.Press("g")
	p.Wants(".guessed")
}

func TestPlayer_Plays_AndStopsForAQuestion(t *testing.T) {
	p := play(t, "#D0")
	eval[string](p, `document.getElementById("pace").value = "250"`)
	p.Press(" ")
	p.Until("the page", `!document.querySelector("#D0-1 .ask").hidden`)
	eval[any](p, `setTimeout(() => document.body.classList.add("later"), 800)`) // three times the pace
	p.Until("the page", `document.body.classList.contains("later")`)
	p.Wants("#count", "2 / 6")
	p.Press("1", "1")
	p.Until("the page", `document.getElementById("count").textContent === "6 / 6"`)
	p.Wants("#D0-1 .guessed", "Right. It is B.")
	if playing := eval[string](p, `document.getElementById("controls").dataset.playing`); playing != "false" {
		t.Errorf("at the end data-playing is %s", playing)
	}
}

func TestPlayer_Scrub_Address_AndScenes(t *testing.T) {
	p := play(t, "#D1.1")
	p.Wants(".story h2", "D1 · a <title>")
	p.Wants("nav a[aria-current]", "D1 a <title>")
	eval[bool](p, `(scrub => {
		scrub.value = 4;
		return scrub.dispatchEvent(new Event("input"));
	})(document.getElementById("scrub"))`)
	p.Wants("#count", "4 / 6")
	if says := eval[string](p, `document.getElementById("scrub").getAttribute("aria-valuetext")`); says != "4 of 6" {
		t.Errorf("the slider says %q", says)
	}
	eval[any](p, `(svg => { // on the number of the second step of the left act
		const box = svg.getBoundingClientRect();
		const x = svg.querySelectorAll(".step")[1].dataset.x * box.width / svg.viewBox.baseVal.width;
		svg.dispatchEvent(new MouseEvent("click", {bubbles: true, clientX: box.left + x, clientY: box.top + 50}));
	})(document.querySelector("#D1-1 .act-picture"))`)
	p.Wants("#count", "2 / 6")
	p.Must(chromedp.Do(p.Ctx, chromedp.EmulateViewport(420, 900)))
	p.Press(kb.End)
	if scrolled := eval[float64](p, `document.querySelector("#D1-1 .picture").scrollLeft`); scrolled < 100 {
		t.Errorf("on a narrow screen the picture is scrolled by %v", scrolled)
	}
	p.Press("n")
	p.Wants("#count", "0 / 0")
	p.Press("n", kb.ArrowRight, " ", "p", "p")
	p.Wants(".story h2", "D0 · a <title>")
	if hash := eval[string](p, "location.hash"); hash != "#D0.1" {
		t.Errorf("the address ends in %s", hash)
	}
}

func TestPlayer_Languages_AndPrint(t *testing.T) {
	p := play(t, "#D0")
	p.Press(kb.ArrowRight, kb.ArrowRight)
	p.Click(`label[for="zh"]`)
	p.Wants("#D0-1 .steps .current", "时间流逝 1 ms")
	p.Wants("#D0-1 .ask strong", "下一个进来的是谁？")
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
	p.Media("print")
	if n := len(p.Shown(".story.on .steps li")); n != 10 {
		t.Errorf("%d steps are printed, not all 10", n)
	}
	p.Wants(".controls, .ask, nav, .curtain")
	p.Wants(".story h2", "D0 · 标题")
}

func TestPlayer_NamesServersInTheReadersLanguage(t *testing.T) {
	p := play(t, "#D1")
	p.Press(kb.ArrowRight)
	for _, lang := range []struct{ id, name, now string }{
		{"en", "node 1", "believing to hold it: A · node 1: A (10.0 s left)"},
		{"zh", "节点 1", "自认为持有：A · 节点 1：A（还剩 10.0 秒）"},
	} {
		p.Click(`label[for="` + lang.id + `"]`)
		p.Wants("#D1-1 .now", lang.now)
		names := eval[string](p, `[...document.querySelectorAll("#D1-1 text.soft[x='6']")]
			.filter((t) => t.checkVisibility()).map((t) => t.textContent).join()`)
		if names != lang.name+",Redis" {
			t.Errorf("the lanes of servers are named %s", names)
		}
	}
}

var (
	made        = flag.String("page", "", "a page of all experiments, as make lab makes it: FILE, open it too")
	screenshots = flag.Bool("screenshots", false, "make the pictures of docs/lab.md from that page")
)

// madePage returns the file of the page that make lab has made. Only make lab has all experiments run beforehand.
func madePage(t *testing.T) string {
	t.Helper()
	if *made == "" {
		t.Skip("no page of all experiments: make lab makes one, and opens it here")
	}
	browser.Path(t)
	file, err := filepath.Abs(*made)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

func TestMadePage_Plays(t *testing.T) {
	p := openPage(t, madePage(t), "#D3.2")
	p.Wants(".story h2", "D3 · SET NX EX, and a DEL that does not ask")
	for range 8 {
		p.Press(kb.ArrowRight)
	}
	p.Wants("#D3-1 .lit .chip", "A") // it has sent DEL
	if !*screenshots {
		return
	}
	eval[any](p, `document.head.append(make("style", {}, "* { transition: none !important }"))`)
	for lang, name := range map[string]string{"en": "page.png", "zh": "page.zh-CN.png"} {
		p.Click(`label[for="` + lang + `"]`)
		png, err := chromedp.Run(p.Ctx, chromedp.Screenshot(chromedp.CSS(".story.on .acts")))
		p.Must(err)
		p.Must(os.WriteFile(filepath.Join("..", "..", "..", "docs", "lab", name), png, 0o644))
	}
}

// TestMadePage_FitsAPhone: pictures, steps and code scroll inside of the page, in both languages.
func TestMadePage_FitsAPhone(t *testing.T) {
	const phone = 390
	p := openPage(t, madePage(t), "")
	p.Must(chromedp.Do(p.Ctx, chromedp.EmulateViewport(phone, 844)))
	for _, lang := range []string{"en", "zh"} {
		p.Click(`label[for="` + lang + `"]`)
		for _, id := range eval[[]string](p, `[...document.querySelectorAll(".story")].map((s) => s.id)`) {
			eval[any](p, `location.hash = "`+id+`"`)
			p.Until("the experiment", `document.querySelector(".story.on")?.id === "`+id+`"`)
			if wide := eval[int](p, "document.documentElement.scrollWidth"); wide > phone {
				t.Errorf("%s (%s) is %d pixels wide on a screen of %d", id, lang, wide, phone)
			}
		}
	}
}

// eval returns the value of an expression in the page.
func eval[T any](p *browser.Tab, expression string) T {
	p.Helper()
	return browser.Eval[T](p, expression)
}
