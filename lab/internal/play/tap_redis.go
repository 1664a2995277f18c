package play

import (
	"bufio"
	"bytes"
	"crypto/sha1" //nolint:gosec // the name of a script on a server
	"encoding/hex"
	"errors"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/interlock-go/interlock/internal/servers"
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
	t.requests = t.each(t.requests, func(v servers.RedisValue) {
		args := words(v)
		if len(args) > 0 {
			t.waiting = append(t.waiting, question{strings.ToUpper(args[0]), t.heard(false, t.command(args))})
		}
	})
}

func (t *redisTalk) says(b []byte) {
	t.replies = append(t.replies, b...)
	t.replies = t.each(t.replies, func(v servers.RedisValue) {
		if v.Kind == '>' && !t.confirms(v) {
			if said := words(v); len(said) > 0 && strings.HasSuffix(said[0], "message") {
				t.heard(true, quoted(said))
			}
			return
		}
		if len(t.waiting) > 0 {
			t.answered(t.waiting[0].said, shorten(inOneLine(v), longestAnswer))
			t.waiting = t.waiting[1:]
		}
	})
}

// confirms reports whether a push is the answer to a subscription.
func (t *redisTalk) confirms(v servers.RedisValue) bool {
	return len(t.waiting) > 0 && len(v.Items) > 0 && strings.EqualFold(v.Items[0].Text, t.waiting[0].name)
}

// each calls f for each whole value, and returns the rest.
func (t *redisTalk) each(b []byte, f func(v servers.RedisValue)) []byte {
	from := bytes.NewReader(b)
	in := bufio.NewReader(from)
	for whole := 0; !t.deaf; whole = len(b) - from.Len() - in.Buffered() {
		v, err := servers.ReadRedisValue(in)
		switch {
		case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
			return b[whole:]
		case err != nil:
			t.deaf = true
		default:
			f(v)
		}
	}
	return nil
}

// words are the texts of an array.
func words(v servers.RedisValue) (all []string) {
	for _, item := range v.Items {
		all = append(all, item.Text)
	}
	return all
}

// inOneLine is the value as redis-cli tells it.
func inOneLine(v servers.RedisValue) string {
	switch {
	case v.Null:
		return "(nil)"
	case v.Items == nil:
		return quoted(strings.Fields(v.Text))
	}
	var all []string
	for _, item := range v.Items {
		all = append(all, inOneLine(item))
	}
	return "[" + strings.Join(all, ", ") + "]"
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
