package svg

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

var (
	selector = regexp.MustCompile(`\.([a-z]+)\{`)
	class    = regexp.MustCompile(`class="([^"]*)"`)
	opening  = regexp.MustCompile(`^<svg [^>]*viewBox="0 0 (\d+) (\d+)" width="(\d+)" height="(\d+)"`)
	colour   = regexp.MustCompile(`(?:fill|stroke)="(?:#|white|black)`)
)

// pictures are all that the programs of this repository have drawn for the documents.
var pictures = []string{"docs/observed.svg", "docs/simulated-growth.svg", "examples/market/market.svg"}

// TestStyle_HasEachColourForDarkPagesToo: what only gives a width, as "line" does, needs none.
func TestStyle_HasEachColourForDarkPagesToo(t *testing.T) {
	light, dark, _ := strings.Cut(style, "@media (prefers-color-scheme:dark)")
	for _, m := range selector.FindAllStringSubmatch(light, -1) {
		if name := m[1]; name != "line" && !strings.Contains(dark, "."+name+"{") {
			t.Errorf("%s has no colour on a dark page", name)
		}
	}
}

// TestPictures_AreDrawnWithTheStyle compares the committed pictures with what their programs write now: drawing them
// again would need a measurement.
func TestPictures_AreDrawnWithTheStyle(t *testing.T) {
	known := map[string]bool{}
	for _, m := range selector.FindAllStringSubmatch(style, -1) {
		known[m[1]] = true
	}
	for _, name := range pictures {
		data, err := os.ReadFile("../../" + name)
		if err != nil {
			t.Fatal(err)
		}
		text := string(data)
		size := opening.FindStringSubmatch(text)
		if len(size) != 5 || size[1] != size[3] || size[2] != size[4] {
			t.Errorf("%s: the first line has no viewBox as large as the picture", name)
		}
		if !strings.Contains(text, style) {
			t.Errorf("%s has another style sheet", name)
		}
		for _, m := range class.FindAllStringSubmatch(text, -1) {
			for _, c := range strings.Fields(m[1]) {
				if !known[c] {
					t.Errorf("%s: no colour for the class %s", name, c)
				}
			}
		}
		if found := colour.FindString(text); found != "" {
			t.Errorf("%s: %s is the same on light and dark pages", name, found)
		}
		if n := strings.Count(text, "<text ") - strings.Count(text, `<text class="`); n > 0 {
			t.Errorf("%s: %d texts without a class are black on a dark page", name, n)
		}
	}
}
