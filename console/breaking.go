package console

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"strconv"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/console/board"
	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/webguard"
)

// maxRequest is how long the body of a request may be. The longest name fits, however it is escaped.
const maxRequest = 64 << 10

// breakRequest asks to end a hold.
type breakRequest struct {
	Kind  driver.Kind `json:"kind"`
	Name  string      `json:"name"`
	Token string      `json:"token"` // of the hold as the visitor saw it: whoever came since is not hit
	Typed string      `json:"typed"` // the name once more, by hand
}

// brokenAnswer says that it was done.
type brokenAnswer struct {
	Broken bool `json:"broken"`
}

// notAsked says why a request to break something is not passed on.
type notAsked struct {
	status    int
	why, hint string
}

// serveBreak ends a hold, if it may, and writes down that somebody wanted it.
func (con *Console) serveBreak(w http.ResponseWriter, r *http.Request) {
	if media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || media != "application/json" {
		// No form can send this type, and a script of another site only after the browser has asked.
		refuse(w, http.StatusUnsupportedMediaType, "the request must be application/json", "")
		return
	}
	var asked breakRequest
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxRequest)).Decode(&asked); err != nil {
		refuse(w, http.StatusBadRequest, "the request is no JSON object with kind, name, token and typed", "")
		return
	}
	token, no := con.mayBreak(&asked)
	e := AuditEntry{
		Who: con.who(r), From: r.RemoteAddr, Action: "break", Kind: asked.Kind, Name: asked.Name, Token: token,
	}
	if no != nil {
		e.Result, e.Error = "refused", no.why
		_ = con.audit.write(&e) // nothing is done that would have to be prevented
		refuse(w, no.status, no.why, no.hint)
		return
	}
	// Whoever asked may be gone before the engine has answered: what was begun is ended, and written down.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), con.opts.Timeout)
	defer cancel()
	con.breakHold(ctx, w, &e)
}

// mayBreak checks a request without asking the engine.
func (con *Console) mayBreak(asked *breakRequest) (token uint64, _ *notAsked) {
	token, err := strconv.ParseUint(asked.Token, 10, 64)
	reason, lacks := con.client.Traits().Lacking(driver.Breaking)
	switch {
	case !con.opts.AllowBreak:
		return token, &notAsked{http.StatusForbidden, whyNoBreak, "use interlock break"}
	case lacks:
		return token, &notAsked{http.StatusNotImplemented, reason, ""}
	case err != nil || token == 0:
		return 0, &notAsked{http.StatusBadRequest, fmt.Sprintf("%q is not the token of a hold", asked.Token), ""}
	case asked.Typed != asked.Name:
		return token, &notAsked{
			http.StatusBadRequest, "what was typed is not the name of the lock",
			"type the name of the lock as it is shown",
		}
	}
	return token, nil
}

// breakHold asks the engine, between two entries of the audit. Nothing is broken that could not be written down.
func (con *Console) breakHold(ctx context.Context, w http.ResponseWriter, e *AuditEntry) {
	con.describe(ctx, e)
	e.Result = "asked"
	if err := con.audit.write(e); err != nil {
		refuse(w, http.StatusInternalServerError,
			"the audit cannot be written, so nothing was broken: "+err.Error(), "")
		return
	}
	err := con.poller.Break(board.Event{
		Kind: e.Kind, Name: e.Name, Client: e.Client, Owner: e.Owner, Token: e.Token, Why: "by " + e.Who,
	}, func() error { return con.client.Break(ctx, e.Kind, e.Name, e.Token) })
	e.Result = resultOf(err)
	if err != nil {
		e.Error = err.Error()
	}
	if err := con.audit.write(e); err != nil {
		con.log.Error("console: the outcome is not in the audit", "lock", e.Name, "result", e.Result, "err", err)
	}
	if err != nil {
		refuse(w, statusOf(err), err.Error(), hintOf(err))
		return
	}
	answer(w, http.StatusOK, brokenAnswer{true})
}

// describe adds who holds the lock, for whoever reads the audit. Without it the break goes on: the token says who is
// meant.
func (con *Console) describe(ctx context.Context, e *AuditEntry) {
	ctx, cancel := context.WithTimeout(ctx, con.opts.Timeout/2) // the break needs the rest
	defer cancel()
	info, err := con.client.Look(ctx, e.Kind, e.Name)
	if err != nil {
		return
	}
	for _, h := range info.Holders {
		if h.Token == e.Token {
			e.Client, e.Owner = h.Client, h.Owner
		}
	}
}

// resultOf is the word of the audit for an outcome.
func resultOf(err error) string {
	switch {
	case err == nil:
		return "broken"
	case errors.Is(err, interlock.ErrUnavailable), errors.Is(err, context.DeadlineExceeded):
		return "unknown"
	}
	return "failed"
}

// hintOf says what to do after a break that has failed.
func hintOf(err error) string {
	switch {
	case errors.Is(err, interlock.ErrHeld):
		return "another owner holds it by now: look again before you decide"
	case errors.Is(err, interlock.ErrNotHeld):
		return "it is free already"
	case resultOf(err) == "unknown":
		return "whether it is broken is unknown: look again"
	}
	return ""
}

// who names the visitor.
func (con *Console) who(r *http.Request) string {
	if con.opts.Who != nil {
		return con.opts.Who(r)
	}
	return webguard.Visitor(r.Context())
}
