package story

import (
	"encoding/json"
	"fmt"
	"regexp"
)

// Lang is a language of the stories.
type Lang string

// The languages.
const (
	EN Lang = "en"
	ZH Lang = "zh"
)

// Text is one thing said in both languages.
type Text struct {
	EN, ZH string
}

// T returns what is said in English and in Chinese, both with the same arguments. Where the order of these differs, the
// Chinese form names them by number, as in %[2]d.
func T(en, zh string, args ...any) Text {
	if len(args) == 0 {
		return Text{en, zh}
	}
	return Text{fmt.Sprintf(en, args...), fmt.Sprintf(zh, args...)}
}

// Same returns what is the same in both languages, such as a command.
func Same(text string) Text { return Text{text, text} }

// volatile is a value with its name, as Volatile writes it into a text.
var volatile = regexp.MustCompile("\x01([^\x02]*)\x02([^\x03]*)\x03")

// Volatile returns a value that differs from run to run, to be put into a Text. A golden file has its name instead.
func Volatile(value any, name string) string { return fmt.Sprintf("\x01%v\x02%s\x03", value, name) }

// In returns the text in one language.
func (t Text) In(l Lang) string { return volatile.ReplaceAllString(t.in(l), "$1") }

// golden returns the text without what differs from run to run.
func (t Text) golden(l Lang) string { return volatile.ReplaceAllString(t.in(l), "<$2>") }

func (t Text) in(l Lang) string {
	if l == ZH {
		return t.ZH
	}
	return t.EN
}

// MarshalJSON writes both languages.
func (t Text) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		EN string `json:"en"`
		ZH string `json:"zh"`
	}{t.In(EN), t.In(ZH)})
}

// Join returns texts as one.
func Join(texts ...Text) Text {
	var all Text
	for _, t := range texts {
		all.EN += t.EN
		all.ZH += t.ZH
	}
	return all
}
