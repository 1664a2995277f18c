// Package register is the resource that the tortured locks protect: for each name a number that a holder reads, and
// writes back one larger. It lives in the coordinator, so it never fails, and it logs each read and write in the order
// in which they took effect, so a lost reply blurs no verdict.
//
// Each name has two numbers. The fenced one refuses who was overtaken, by the rule of package fence. The plain
// one takes everything, as most resources do: it is the control. A run in which nothing of it is lost has
// proved nothing of the other.
package register

import "github.com/interlock-go/interlock/torture/history"

// LogFile is the name of the log in a run's folder.
const LogFile = "register.jsonl"

// Entry is one line of the log: one read or write of one of the two numbers.
type Entry struct {
	At     history.Instant `json:"t"`
	Proc   int             `json:"proc"`
	Gor    int             `json:"gor"`
	Seq    int             `json:"seq"`
	Write  bool            `json:"write,omitempty"`
	Fenced bool            `json:"fenced,omitempty"`
	Shared bool            `json:"shared,omitempty"` // of a reader, who writes nothing
	Name   string          `json:"name"`
	Token  uint64          `json:"token"`
	Nonce  string          `json:"nonce"`
	Before int             `json:"before"`          // the number when the request arrived
	Value  int             `json:"value"`           // the number to be written, or that was read
	Stale  bool            `json:"stale,omitempty"` // refused: the number is still Before
}

// Ending is what a process is about to ask of the engine that ends something.
type Ending string

// The endings.
const (
	Releases  Ending = "releases"  // a hold is given back
	Converts  Ending = "converts"  // a hold changes its mode
	Withdraws Ending = "withdraws" // who waits gives up
)

// request is what a client sends, and answer what it gets: a line of JSON each.
type request struct {
	Entry
	Ends Ending `json:"ends,omitempty"` // it touches nothing, and announces that
}

type answer struct {
	Value int    `json:"value"`
	Stale bool   `json:"stale,omitempty"`
	Err   string `json:"err,omitempty"`
}
