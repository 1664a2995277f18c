package play

import (
	"bytes"
	"crypto/sha1" //nolint:gosec // the name of a script on a server
	"encoding/hex"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/interlock-go/interlock/lab/internal/story"
)

// redisTalk understands a connection to Redis.
type redisTalk struct {
	*listener

	requests, replies []byte
	deaf              bool // what came is not the protocol
	waiting           []question
}

// question is a command that is not answered yet.
type question struct {
	name string // in capitals
	said *story.Wire
}

func (t *redisTalk) asks(b []byte) {
	t.requests = append(t.requests, b...)
	t.requests = t.each(t.requests, func(v resp) {
		args := v.words()
		if len(args) > 0 {
			t.waiting = append(t.waiting, question{strings.ToUpper(args[0]), t.heard(false, t.command(args))})
		}
	})
}

func (t *redisTalk) says(b []byte) {
	t.replies = append(t.replies, b...)
	t.replies = t.each(t.replies, func(v resp) {
		if v.kind == '>' && !t.confirms(v) {
			if words := v.words(); len(words) > 0 && strings.HasSuffix(words[0], "message") {
				t.heard(true, quoted(words))
			}
			return
		}
		if len(t.waiting) > 0 {
			t.answered(t.waiting[0].said, shorten(v.String(), longestAnswer))
			t.waiting = t.waiting[1:]
		}
	})
}

// confirms reports whether a push is the answer to a subscription.
func (t *redisTalk) confirms(v resp) bool {
	return len(t.waiting) > 0 && len(v.items) > 0 && strings.EqualFold(v.items[0].text, t.waiting[0].name)
}

// each calls f for each whole value, and returns the rest.
func (t *redisTalk) each(b []byte, f func(v resp)) []byte {
	for len(b) > 0 && !t.deaf {
		v, n, err := readRESP(b)
		if err != nil {
			t.deaf = true
			return nil
		}
		if n == 0 {
			return b
		}
		f(v)
		b = b[n:]
	}
	return nil
}

// resp is a value of Redis's protocol.
type resp struct {
	kind  byte
	text  string
	null  bool
	items []resp // of an array, set or push; of a map keys and values in turn
}

// words are the texts of an array.
func (v resp) words() []string {
	var all []string
	for _, item := range v.items {
		all = append(all, item.text)
	}
	return all
}

// String is the value as redis-cli tells it, in one line.
func (v resp) String() string {
	switch {
	case v.null:
		return "(nil)"
	case v.items == nil:
		return quoted(strings.Fields(v.text))
	}
	var all []string
	for _, item := range v.items {
		all = append(all, item.String())
	}
	return "[" + strings.Join(all, ", ") + "]"
}

// errNotRESP says that bytes are something else.
var errNotRESP = strconv.ErrSyntax

// readRESP reads one value, and returns how long it is: 0 if it is not complete.
func readRESP(b []byte) (v resp, n int, err error) {
	end := bytes.Index(b, []byte("\r\n"))
	switch {
	case end < 0:
		return resp{}, 0, nil
	case end == 0:
		return resp{}, 0, errNotRESP
	}
	v, n = resp{kind: b[0], text: string(b[1:end])}, end+2
	switch v.kind {
	case '+', '-', ':', ',', '#', '(':
		return v, n, nil
	case '_':
		v.null = true
		return v, n, nil
	}
	size, err := strconv.Atoi(v.text)
	if err != nil || size > mostPacket {
		return resp{}, 0, errNotRESP
	}
	v.text, v.null = "", size < 0
	switch v.kind {
	case '$', '=', '!':
		if v.null {
			return v, n, nil
		}
		if len(b) < n+size+2 {
			return resp{}, 0, nil
		}
		if v.text = string(b[n : n+size]); v.kind == '=' {
			_, v.text, _ = strings.Cut(v.text, ":") // the text's format
		}
		return v, n + size + 2, nil
	case '*', '~', '>':
	case '%', '|':
		size *= 2
	default:
		return resp{}, 0, errNotRESP
	}
	v.items = []resp{}
	for range max(size, 0) {
		item, length, err := readRESP(b[n:])
		if err != nil || length == 0 {
			return resp{}, 0, err
		}
		v.items, n = append(v.items, item), n+length
	}
	return v, n, nil
}

// command is a command as a story tells it: a script has its name, also where it was called before by its SHA-1.
func (t *redisTalk) command(args []string) string {
	words := slices.Clone(args)
	if len(args) > 1 {
		switch strings.ToUpper(args[0]) {
		case "EVAL", "EVAL_RO":
			words[1] = t.meet(args[1])
		case "EVALSHA", "EVALSHA_RO":
			words[1] = scriptOf(args[1])
		case "SCRIPT":
			if len(args) == 3 && strings.EqualFold(args[1], "LOAD") {
				words[2] = t.meet(args[2])
			}
		}
	}
	return shorten(quoted(words), longestCommand)
}

// meet returns the name of a script, and remembers it.
func (t *redisTalk) meet(source string) string {
	sum := sha1.Sum([]byte(source)) //nolint:gosec // see the import
	sha, name := hex.EncodeToString(sum[:]), "<"+nameScript(source)+">"
	t.renamed(scriptOf(sha), name)
	scripts.Store(sha, name)
	return name
}

// quoted joins words. Those that could be misread are quoted, and long ones are cut.
func quoted(words []string) string {
	var all []string
	for _, word := range words {
		plain := word != "" && utf8.ValidString(word) && !strings.ContainsFunc(word, func(r rune) bool {
			return unicode.IsSpace(r) || !unicode.IsPrint(r)
		})
		word = shorten(strings.ToValidUTF8(word, "?"), longestWord)
		if !plain {
			word = strconv.Quote(word)
		}
		all = append(all, word)
	}
	return strings.Join(all, " ")
}

// scripts are the names of the scripts that were sent as a whole, by their SHA-1.
var scripts sync.Map

// scriptOf returns the name of a script that is called by its SHA-1.
func scriptOf(sha string) string {
	if name, known := scripts.Load(sha); known {
		return name.(string)
	}
	return "<" + shorten(sha, 9) + ">"
}

// heads are the first lines of the parts of interlock's scripts.
var heads = regexp.MustCompile(`(?m)^-- ([a-z_]+): `)

// shared are the parts that several scripts have.
var shared = []string{
	"clock", "begin", "text", "lock", "crowd", "presence", "cond", "rules", "open", "end", "tell", "watched",
}

// lastCall is the command in the last line of a script.
var lastCall = regexp.MustCompile(`redis\.call\('(\w+)'[^\n]*$`)

// nameScript returns the name of the part that only this script has. A guard's stands before a script of the caller's.
func nameScript(source string) string {
	for _, head := range heads.FindAllStringSubmatch(source, -1) {
		if slices.Contains(shared, head[1]) {
			continue
		}
		if call := lastCall.FindStringSubmatch(source); call != nil && head[1] == "guard" {
			return "guard " + call[1]
		}
		return head[1]
	}
	return "script"
}
