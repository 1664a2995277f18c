// Package story is what an experiment leaves behind: who did what, what the server answered, and who believed to hold
// what after each step. It is told in words (story.go, print.go), and played on a page (package report).
package story

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Story is one experiment that was run.
type Story struct {
	ID    string `json:"id"`    // as in D3
	Title Text   `json:"title"` // the exhibit, in a line
	About Text   `json:"about"` // what it does, and what is wrong with it
	Acts  []*Act `json:"acts"`
}

// Act is one course of events: the exhibit's, or the sound lock's in the same events.
type Act struct {
	Title  Text     `json:"title"`
	Fenced bool     `json:"fenced"`         // two may believe: what is shown is that the resource refuses one of them
	Sound  bool     `json:"sound"`          // of the sound lock: two believers would be a bug of interlock
	Cast   []string `json:"cast"`           // who may believe to hold the lock, in the order of the picture
	Keys   []string `json:"keys,omitempty"` // the servers that are asked, after each step, who holds it
	Steps  []Step   `json:"steps"`

	Answers []int  `json:"answers,omitempty"` // of the sound lock: the numbers of the acts whose events it repeats
	Beats   []Beat `json:"beats,omitempty"`   // renewals, in the order of time

	Wire   []*Wire `json:"wire,omitempty"`   // of the sound lock: what its clients sent and heard, in the order of time
	Unsaid int     `json:"unsaid,omitempty"` // how many there were beyond these
}

// Wire is what a client of the sound lock sent to a server, or heard from it unasked.
type Wire struct {
	At     time.Duration `json:"at_ns"` // since the story began
	Who    string        `json:"who"`
	To     string        `json:"to"`               // the server
	Push   bool          `json:"push,omitempty"`   // the server's words, which nobody asked for at the time
	Text   string        `json:"text"`             // as the server got it, with names for scripts
	Answer string        `json:"answer,omitempty"` // as far as one was heard
}

// Beat is one renewal of a lease, which is full again then. Most happen between two steps.
type Beat struct {
	At   time.Duration `json:"at_ns"` // since the story began
	Who  string        `json:"who"`
	Left int64         `json:"left_ms"`
}

// Kind is the sort of a step.
type Kind string

// The kinds of steps.
const (
	Says    Kind = "says"    // the narrator, or an actor, in words
	Asks    Kind = "asks"    // a command and its answer
	Fate    Kind = "fate"    // what befalls somebody: a crash, a pause, time that passes
	Clash   Kind = "clash"   // two believe to hold what only one may hold
	Shown   Kind = "shown"   // what was to be shown
	Missing Kind = "missing" // what was to be shown and was not
)

// State is what an actor believes, and in what state it is.
type State string

// The states of an actor. Who stands still cannot do harm at the moment, and cannot be told anything either.
const (
	Idle   State = ""
	Holds  State = "holds"
	Still  State = "still"  // stands still, and believed that it holds the lock when it stopped
	Halted State = "halted" // stands still, and did not
	Waits  State = "waits"  // in a queue
	Dead   State = "dead"
	Woken  State = "woken" // for nothing: another has the lock
)

// Step is one line of the story, and how things stand after it.
type Step struct {
	At     time.Duration    `json:"at_ns"` // since the story began
	Who    string           `json:"who,omitempty"`
	Kind   Kind             `json:"kind"`
	Text   Text             `json:"text"`
	States map[string]State `json:"states,omitempty"` // by member of the cast
	// for each of Keys: who holds it as that server says, "" for nobody
	Held []string `json:"held,omitempty"`
	// for each of Keys: the milliseconds until the lease ends there, Forever, or 0 if there is none or nobody tells
	Left []int64 `json:"left_ms,omitempty"`

	Message *Message `json:"message,omitempty"` // what went over the wire in this step

	// the lines of its exhibit at which each client is, as file:line: the one that sends, then its callers
	Code map[string][]string `json:"code,omitempty"`
}

// Forever is a lease without an end.
const Forever = -1

// Message is what a client and a server said to each other.
type Message struct {
	To  string `json:"to"` // the server
	Way Way    `json:"way"`
}

// Way is which of the two was heard.
type Way string

// The ways. Whoever waits in a queue has asked in one step and is answered in a later one.
const (
	Both    Way = "both"
	Request Way = "request"
	Reply   Way = "reply"
	Lost    Way = "lost" // no answer came
)

// Believers returns who acts and believes to hold the lock.
func (s *Step) Believers() []string {
	var all []string
	for who, state := range s.States {
		if state == Holds {
			all = append(all, who)
		}
	}
	slices.Sort(all)
	return all
}

// Clashed reports whether two believed to hold the lock at some step.
func (a *Act) Clashed() bool {
	return slices.ContainsFunc(a.Steps, func(s Step) bool { return len(s.Believers()) > 1 })
}

// OK reports whether all was shown that was to be shown, and no two believed to hold the sound lock.
func (s *Story) OK() bool {
	for _, a := range s.Acts {
		if a.Sound && !a.Fenced && a.Clashed() ||
			slices.ContainsFunc(a.Steps, func(s Step) bool { return s.Kind == Missing }) {
			return false
		}
	}
	return len(s.Acts) > 0
}

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

// AllNodes is the server of a message that a client sends to several at once.
const AllNodes = "nodes"

// servers are the names of servers, and of what the picture shows of them, in Chinese. Others are the same in both
// languages: products, and keys.
var servers = map[string]string{
	"primary": "主节点", "replica": "副本", "replica, now primary": "副本（现为主节点）", AllNodes: "各节点",
	"queue": "队列", "lock": "锁", "users": "用户", "Redis: stock": "Redis 库存", "MariaDB: stock": "MariaDB 库存",
}

// Server returns the name of a server, as an act or a message has it, in both languages.
func Server(name string) Text {
	if zh, known := servers[name]; known {
		return Text{EN: name, ZH: zh}
	}
	if number, is := strings.CutPrefix(name, "node "); is {
		return Text{EN: name, ZH: "节点 " + number}
	}
	return Same(name)
}
