// Answers: objects, and problems in the form of RFC 9457. Every handler's error comes here by letIn (access.go).

package lockapi

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/interlock-go/interlock"
)

// docs is where the types of problems are explained, each under its own name.
const docs = "https://github.com/interlock-go/interlock/blob/main/docs/serve.md#"

// problem is an error as RFC 9457 has it. It is the only form in which this server refuses something.
type problem struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail"`

	Reason string        `json:"reason,omitempty"` // of a loss: interlock.LostReason
	Holder *holderObject `json:"holder,omitempty"` // of a lock that another client holds, as far as is known
}

// Error makes a problem the error of a handler.
func (p *problem) Error() string { return p.Title + ": " + p.Detail }

// titles has the title of each type of problem. The same type always has the same title, as the RFC wants it.
var titles = map[string]string{
	"request":     "The request is invalid",
	"media":       "The body is not JSON",
	"large":       "The body is too large",
	"token":       "A valid token is needed",
	"host":        "The host is not allowed",
	"origin":      "A page of another site sent this",
	"tries":       "Too many wrong tokens",
	"path":        "There is no such path",
	"method":      "The path does not allow this method",
	"id":          "The id is in use",
	"lease":       "There is no such lease",
	"held":        "Another client holds the lock",
	"lost":        "The lease was lost",
	"released":    "The lease was released",
	"full":        "The server has reached a limit",
	"ending":      "The server is ending",
	"refused":     "The engine refused",
	"unsupported": "The engine cannot do this",
	"unavailable": "The engine did not answer",
}

// problemf makes a problem of one of the types in titles.
func problemf(status int, kind, detail string) *problem {
	return &problem{Type: docs + kind, Title: titles[kind], Status: status, Detail: detail}
}

// problemOf finds the problem that an error of the library is. The order matters: a refusal is unavailable too, and
// what is certain about the lease comes first. An error that is none of these is about the request.
func problemOf(err error) *problem {
	var p *problem
	if errors.As(err, &p) {
		return p
	}
	var held *interlock.HeldError
	var lost *interlock.LostError
	switch {
	case errors.As(err, &lost):
		p = problemf(http.StatusGone, "lost", err.Error())
		p.Reason = string(lost.Reason)
		return p
	case errors.Is(err, interlock.ErrReleased):
		return problemf(http.StatusGone, "released", err.Error())
	case errors.As(err, &held):
		p = problemf(http.StatusConflict, "held", err.Error())
		p.Holder = holderOf(held.Owner, held.Client, "", held.Token, held.Since, held.Until)
		return p
	case errors.Is(err, interlock.ErrHeld):
		return problemf(http.StatusConflict, "held", err.Error())
	case errors.Is(err, interlock.ErrUnsupported):
		return problemf(http.StatusNotImplemented, "unsupported", err.Error())
	case errors.Is(err, interlock.ErrClosed):
		return problemf(http.StatusServiceUnavailable, "ending", err.Error())
	case errors.Is(err, interlock.ErrRefused):
		return problemf(http.StatusBadGateway, "refused", err.Error())
	case errors.Is(err, interlock.ErrUnavailable), errors.Is(err, context.DeadlineExceeded),
		errors.Is(err, context.Canceled):
		return problemf(http.StatusServiceUnavailable, "unavailable", err.Error())
	}
	return problemf(http.StatusBadRequest, "request", err.Error())
}

// answerProblem sends a problem, with the time after which it makes sense to ask again if there is one.
func answerProblem(w http.ResponseWriter, p *problem) {
	if p.Status == http.StatusServiceUnavailable || p.Status == http.StatusConflict { // of tries the guard has said it
		w.Header().Set("Retry-After", "1")
	}
	w.Header().Set("Content-Type", "application/problem+json")
	write(w, p.Status, p)
}

func answer(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	write(w, status, v)
}

// write sends v as one line of JSON.
func write(w http.ResponseWriter, status int, v any) {
	text, err := json.Marshal(v)
	if err != nil { // all that is sent are structs of this package
		panic(err)
	}
	w.WriteHeader(status)
	_, _ = w.Write(append(text, '\n')) // a client that has gone needs no answer
}

// holderObject is who holds a lock, as the engine sees it. What the engine does not tell is left out.
type holderObject struct {
	Owner  string `json:"owner,omitempty"`
	Client string `json:"client,omitempty"`
	Label  string `json:"label,omitempty"`
	Token  string `json:"token,omitempty"`
	Since  string `json:"since,omitempty"`
	Until  string `json:"until,omitempty"`
}

// holderOf makes one of what the library tells about a holder.
func holderOf(owner, client, label string, token uint64, since, until time.Time) *holderObject {
	return &holderObject{owner, client, label, tokenText(token), timeText(since), timeText(until)}
}

// timeText is a time in UTC to the millisecond, or nothing for the zero time.
func timeText(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02T15:04:05.000Z")
}
