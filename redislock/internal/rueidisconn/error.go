package rueidisconn

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"strings"
	"time"

	"github.com/interlock-go/interlock/enginekit"
	"github.com/interlock-go/interlock/redislock/conn"
)

var errHangs = errors.New("the server does not answer")

// verdict says what an error means for a call.
type verdict int

const (
	unknown   verdict = iota // the call may have run
	refused                  // it has not run, and asking again does not help
	later                    // it has not run, and may in a moment
	noScript                 // it has not run: the server wants the source
	byItself                 // it has not run: the bundle it was in was refused
	moved                    // it has not run: another node has the slot
	asked                    // it has not run: another node has the key, for this time only
	elsewhere                // it has not run: this server is not the primary any more
	unsent                   // it has not been sent: the link broke while it waited for its turn
	unreached                // it has not been sent: the server could not be reached
)

// judgement is a verdict, and for moved and asked the address of the other node.
type judgement struct {
	verdict verdict
	addr    string
}

// codes says what a server means that answers with an error of its own, by the first word.
var codes = map[string]verdict{
	"NOSCRIPT": noScript,
	"LOADING":  later, "TRYAGAIN": later, "CLUSTERDOWN": later, "MASTERDOWN": later, "BUSY": later,

	"ALONE": byItself,

	"NOAUTH": refused, "WRONGPASS": refused, "NOPERM": refused, "DENIED": refused,
}

// judge says what an error of a call means. The address is that of the node that was asked.
func judge(err error, addr string) judgement {
	message, isAnswer := answer(err)
	if !isAnswer {
		return judgement{verdict: judgeTransport(err)}
	}
	// Redis 6 packs the error of a command in a script into one of its own. It is the first write that fails, so nothing
	// has happened.
	if strings.Contains(message, "-READONLY ") {
		return judgement{verdict: elsewhere}
	}
	code, rest, _ := strings.Cut(message, " ")
	switch code {
	case "MOVED", "ASK":
		return judgeRedirect(code, rest, addr)
	case "READONLY":
		return judgement{verdict: elsewhere}
	}
	if conn.InScript(message) {
		return judgement{verdict: unknown}
	}
	return judgement{verdict: codes[code]}
}

// judgeTransport judges what is not a server's answer. rueidis does not tell whether it had begun to send, except that
// it had not if it could not connect.
func judgeTransport(err error) verdict {
	var refusal *conn.RefusedError
	var broken *net.OpError
	switch {
	case errors.As(err, &refusal):
		return refused
	case errors.Is(err, conn.ErrUnsent):
		return unsent
	case errors.Is(err, conn.ErrReplica), errors.Is(err, conn.ErrNoOwner), errors.Is(err, conn.ErrStranger):
		return later
	case errors.As(err, &broken) && broken.Op == "dial":
		return unreached
	}
	return unknown
}

// judgeRedirect reads what follows MOVED or ASK: the slot and the address. Without a host it is that of the node that
// answers.
func judgeRedirect(code, rest, from string) judgement {
	_, to, _ := strings.Cut(rest, " ")
	to, _, _ = strings.Cut(to, " ")
	colon := strings.LastIndexByte(to, ':')
	if colon < 0 || from == "" || strings.HasPrefix(to, "?") { // it is no Cluster for us, or the node does not know
		return judgement{verdict: refused}
	}
	host, port := strings.Trim(to[:colon], "[]"), to[colon+1:]
	if host == "" {
		host, _, _ = net.SplitHostPort(from)
	}
	to = net.JoinHostPort(host, port)
	if code == "ASK" {
		return judgement{asked, to}
	}
	return judgement{moved, to}
}

// pause waits a moment before a call is tried again: 20 ms, give or take a half, so that those who were refused
// together do not come back together. It reports false if ctx ended.
func pause(ctx context.Context) bool {
	return enginekit.Pause(ctx, 10*time.Millisecond+rand.N(20*time.Millisecond))
}
