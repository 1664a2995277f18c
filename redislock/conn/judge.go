// What an error of a call means for that call. A transport judges each error here, and asks retry.go whether to go on.

package conn

import (
	"errors"
	"net"
	"strings"
)

// Verdict says what an error means for a call, and so what the transport does next.
type Verdict int

// The verdicts. After all but Unknown the call has not run, so it may be sent again.
const (
	Unknown   Verdict = iota // the call may have run
	Refused                  // asking again would be refused again
	Later                    // it may run in a moment
	NoScript                 // the server wants the source
	ByItself                 // the bundle it was in was refused: it is sent by itself
	Moved                    // another node has the slot
	Asked                    // another node has the key, for this time only
	Elsewhere                // this server is not the primary any more
	Unsent                   // nothing was sent: the connection broke while the call waited for its turn
	Unreached                // nothing was sent: the server could not be reached
)

// Judgement is a verdict on an error, and what else the error tells.
type Judgement struct {
	Verdict  Verdict // what the error means for the call
	Addr     string  // host:port of the other node, for Moved and Asked
	Answered bool    // it is the server's answer, not a failure on the way
}

// Library knows the errors of one client library.
type Library struct {
	// Answer returns the message of an error that a server has answered with, if err is one.
	Answer func(err error) (message string, is bool)
	// Failure judges an error that is no answer, by what is known of the library alone. It returns Unknown if the
	// library says nothing, and may be nil.
	Failure func(err error) Verdict
}

// Judge says what an error of a call that was sent once means. from is the address of the server that was asked; it is
// empty if the client is none for a Cluster. An error that is not known means Unknown, the safe side: the call is not
// repeated.
func (l *Library) Judge(err error, from string) Judgement {
	if message, answered := l.Answer(err); answered {
		return JudgeAnswer(message, from)
	}
	var refusal *RefusedError
	if errors.As(err, &refusal) {
		return Judgement{Verdict: Refused}
	}
	if l.Failure != nil {
		if v := l.Failure(err); v != Unknown {
			return Judgement{Verdict: v}
		}
	}
	var broken *net.OpError
	switch {
	case errors.Is(err, ErrUnsent):
		return Judgement{Verdict: Unsent}
	case errors.Is(err, ErrReplica), errors.Is(err, ErrNoOwner), errors.Is(err, ErrStranger):
		return Judgement{Verdict: Later}
	case errors.As(err, &broken) && broken.Op == "dial":
		return Judgement{Verdict: Unreached}
	}
	return Judgement{}
}

// codes gives the verdict on a server's error by its first word. ALONE is our own, see resp.ErrAlone.
var codes = map[string]Verdict{
	"NOSCRIPT": NoScript,
	"LOADING":  Later, "TRYAGAIN": Later, "CLUSTERDOWN": Later, "MASTERDOWN": Later, "BUSY": Later,
	"READONLY": Elsewhere,

	"ALONE": ByItself,

	"NOAUTH": Refused, "WRONGPASS": Refused, "NOPERM": Refused, "DENIED": Refused,
}

// tooManyClients begins the answer of a server that accepts no further connection. It has no code of its own.
const tooManyClients = "max number of clients"

// JudgeAnswer says what a server's answer means. from is as for [Library.Judge]. The order of the cases matters:
// READONLY comes before the general rule about scripts, because a script's first write fails with it.
func JudgeAnswer(message, from string) Judgement {
	code, rest, _ := strings.Cut(message, " ")
	verdict := codes[code]
	switch {
	case verdict == Elsewhere, strings.Contains(message, "-READONLY "):
		// In a script too: its first write fails, so nothing has happened. Redis 6 packs the error of a command in a
		// script into an error of its own.
		verdict = Elsewhere
	case InScript(message): // what came before in the script has run
		verdict = Unknown
	case code == "MOVED", code == "ASK":
		return judgeRedirect(code, rest, from)
	case strings.HasPrefix(strings.TrimPrefix(message, "ERR "), tooManyClients): // some libraries leave ERR out
		verdict = Later
	}
	return Judgement{Verdict: verdict, Answered: true}
}

// judgeRedirect reads what follows MOVED or ASK: the slot and the address. An address without a host is that of the
// node that answered, with another port.
func judgeRedirect(code, rest, from string) Judgement {
	_, to, _ := strings.Cut(rest, " ")
	to, _, _ = strings.Cut(to, " ")
	colon := strings.LastIndexByte(to, ':')
	if colon < 0 || from == "" || strings.HasPrefix(to, "?") { // not a Cluster for us, or the node does not know
		return Judgement{Verdict: Refused, Answered: true}
	}
	host, port := strings.Trim(to[:colon], "[]"), to[colon+1:]
	if host == "" {
		host, _, _ = net.SplitHostPort(from)
	}
	j := Judgement{Verdict: Moved, Addr: net.JoinHostPort(host, port), Answered: true}
	if code == "ASK" {
		j.Verdict = Asked
	}
	return j
}
