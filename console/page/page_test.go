package page_test

import (
	"encoding/json"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/console/page"
)

// catalogues are the languages of the page.
var catalogues = []string{"en", "zh"}

func read(t *testing.T, name string) string {
	t.Helper()
	b, err := page.Files.ReadFile("static/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func words(t *testing.T, language string) map[string]string {
	t.Helper()
	var w map[string]string
	if err := json.Unmarshal([]byte(read(t, language+".json")), &w); err != nil {
		t.Fatalf("%s.json: %v", language, err)
	}
	return w
}

// scripts returns the text of all modules, by name.
func scripts(t *testing.T) map[string]string {
	t.Helper()
	names, err := fs.Glob(page.Files, "static/*.js")
	if err != nil || len(names) == 0 {
		t.Fatalf("found %d scripts: %v", len(names), err)
	}
	all := make(map[string]string)
	for _, name := range names {
		name = strings.TrimPrefix(name, "static/")
		all[name] = read(t, name)
	}
	return all
}

func TestWords_EachLanguageHasTheSameKeysAndValues(t *testing.T) {
	first := words(t, catalogues[0])
	for _, language := range catalogues[1:] {
		w := words(t, language)
		for key, text := range first {
			other, ok := w[key]
			switch {
			case !ok:
				t.Errorf("%s.json lacks %q", language, key)
			case strings.TrimSpace(other) == "" || strings.TrimSpace(text) == "":
				t.Errorf("%q is empty", key)
			case !maps.Equal(values(text), values(other)):
				t.Errorf("%q has the values %v in %s and %v in %s",
					key, values(text), catalogues[0], values(other), language)
			}
		}
		for key := range w {
			if _, ok := first[key]; !ok {
				t.Errorf("%s.json has %q, which %s.json lacks", language, key, catalogues[0])
			}
		}
	}
}

var placeholder = regexp.MustCompile(`\{(\w+)[|}]`)

// values are the names of what is put into a text.
func values(text string) map[string]bool {
	names := make(map[string]bool)
	for _, m := range placeholder.FindAllStringSubmatch(text, -1) {
		names[m[1]] = true
	}
	return names
}

var (
	// literal finds keys as they stand in the scripts, also behind a condition: t('a'), t(x ? 'a' : 'b').
	literal = regexp.MustCompile(`\bt(?:Or)?\(([^()]*?\? )?'([a-z][\w.]*)'(?: : '([a-z][\w.]*)')?`)
	// composed finds the beginnings and ends of keys that are made at run time: t(`state.${m}.long`).
	composed = regexp.MustCompile("\\bt(?:Or)?\\(`([a-z][\\w.]*\\.)\\$\\{(?:[^{}]|\\{[^}]*\\})*\\}([\\w.]*)`")
	// shell finds the keys of the HTML.
	shell = regexp.MustCompile(`data-t(?:-label)?="([^"]+)"`)
)

// A key that no catalogue has is shown as it is; a text that nobody uses is translated for nothing.
func TestWords_EveryKeyThatIsUsedExistsAndEveryOneIsUsed(t *testing.T) {
	w := words(t, "en")
	used := make(map[string]bool)
	use := func(where, key string) {
		if _, ok := w[key]; key != "" && !ok {
			t.Errorf("%s uses %q, which en.json lacks", where, key)
		}
		used[key] = true
	}
	for name, text := range scripts(t) {
		for _, m := range literal.FindAllStringSubmatch(text, -1) {
			use(name, m[2])
			use(name, m[3])
		}
		for _, m := range composed.FindAllStringSubmatch(text, -1) {
			some := false
			for key := range w {
				if strings.HasPrefix(key, m[1]) && strings.HasSuffix(key, m[2]) {
					some, used[key] = true, true
				}
			}
			if !some {
				t.Errorf("%s makes keys %s…%s, and en.json has none", name, m[1], m[2])
			}
		}
	}
	for _, m := range shell.FindAllStringSubmatch(read(t, "index.html"), -1) {
		use("index.html", m[1])
	}
	for _, key := range slices.Sorted(maps.Keys(w)) {
		if !used[key] {
			t.Errorf("nothing uses %q", key)
		}
	}
}

// said begins the keys of sentences of the console and of engines. A sentence that is written in another way where it
// comes from would be shown in English.
const said = "said."

func TestWords_SentencesOfTheConsoleAndOfEnginesAreTheirs(t *testing.T) {
	if _, err := os.Stat("../../go.work"); err != nil {
		t.Skip("the engines are modules of their own, and are not here")
	}
	var sources strings.Builder
	for _, pattern := range []string{"../*.go", "../board/*.go", "../../*lock/*.go", "../../redislock/redlock/*.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %d files, %v", pattern, len(files), err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			sources.Write(text)
		}
	}
	found := 0
	for key, text := range words(t, "en") {
		sentence, ok := strings.CutPrefix(key, said)
		if !ok {
			continue
		}
		found++
		if sentence != text {
			t.Errorf("the key %q has the text %q", sentence, text)
		}
		if !strings.Contains(sources.String(), strconv.Quote(sentence)) {
			t.Errorf("nobody says %q any more", sentence)
		}
	}
	if found == 0 {
		t.Error("no sentence is translated")
	}
}

var (
	imported  = regexp.MustCompile(`from '\./([\w.]+)'`)
	addressed = regexp.MustCompile(`(?:href|src)="(static/[^"]+)"`)
)

func TestFiles_EveryModuleAndAddressExists(t *testing.T) {
	for name, text := range scripts(t) {
		for _, m := range imported.FindAllStringSubmatch(text, -1) {
			if _, err := fs.Stat(page.Files, "static/"+m[1]); err != nil {
				t.Errorf("%s imports %v", name, err)
			}
		}
	}
	for _, m := range addressed.FindAllStringSubmatch(read(t, "index.html"), -1) {
		if _, err := fs.Stat(page.Files, m[1]); err != nil {
			t.Errorf("index.html names %v", err)
		}
	}
}

// The console's content security policy allows neither. A browser would only say so where it runs.
func TestFiles_NeedNothingThatThePolicyForbids(t *testing.T) {
	forbidden := map[string]string{
		"innerHTML": "data would be parsed as HTML", "outerHTML": "data would be parsed as HTML",
		"insertAdjacentHTML": "data would be parsed as HTML", "document.write": "data would be parsed as HTML",
		"eval(": "scripts made at run time are not allowed", "new Function": "scripts made at run time are not allowed",
		"'style'": "set properties of element.style", "style:": "set properties of element.style",
		"http:": "the page loads nothing from elsewhere", "https:": "the page loads nothing from elsewhere",
	}
	for name, text := range scripts(t) {
		text = strings.ReplaceAll(text, "http://www.w3.org/2000/svg", "") // the name of a name space
		for what, why := range forbidden {
			if strings.Contains(text, what) {
				t.Errorf("%s has %q: %s", name, what, why)
			}
		}
	}
	if html := read(t, "index.html"); strings.Contains(html, " style=") || strings.Contains(html, "<style") ||
		regexp.MustCompile(`<script[^>]*>[^<]`).MatchString(html) || regexp.MustCompile(` on\w+=`).MatchString(html) {
		t.Error("index.html has an inline script or style")
	}
}
