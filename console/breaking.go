package console

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"strconv"
	"sync"
	"time"

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

// keptEntries is how many entries of the audit the page can show.
const keptEntries = 200

// AuditEntry is a line of the audit. An attempt has two with the same ID: one before it, with the result "asked", and
// one with its outcome. One that was refused has only that one.
type AuditEntry struct {
	Time   time.Time   `json:"time"`             // by the clock of this process
	ID     uint64      `json:"id"`               // of the attempt, in this process
	Who    string      `json:"who"`              // the visitor: Token.Name
	From   string      `json:"from"`             // the address that the request came from
	Action string      `json:"action"`           // "break"
	Kind   driver.Kind `json:"kind"`             // of the lock
	Name   string      `json:"name"`             // of the lock
	Token  uint64      `json:"token,string"`     // of the hold that the visitor saw
	Client string      `json:"client,omitempty"` // who held the lock by that token just before; absent if nobody did
	Owner  string      `json:"owner,omitempty"`  // of that hold, as Client
	// Result is asked, broken, refused (by the console), failed (nothing was broken) or unknown (the engine did not
	// answer).
	Result string `json:"result"`
	Error  string `json:"error,omitempty"` // why it was refused or failed, or the outcome is unknown
}

// audit writes entries down and remembers the last ones.
type audit struct {
	mu      sync.Mutex // guards what follows; the writer is called under it, so that lines stay whole
	to      io.Writer  // nil: log
	log     *slog.Logger
	entries []AuditEntry // oldest first
	lastID  uint64
}

func newAudit(o *Options) *audit { return &audit{to: o.Audit, log: o.Logger} }

// write writes one entry, which gets its time, and an ID if it has none.
func (a *audit) write(e *AuditEntry) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	e.Time = time.Now().UTC().Round(0)
	if e.ID == 0 {
		a.lastID++
		e.ID = a.lastID
	}
	if err := a.put(e); err != nil {
		return err
	}
	a.entries = append(a.entries, *e)
	if len(a.entries) >= 2*keptEntries {
		a.entries = append([]AuditEntry(nil), a.entries[keptEntries:]...)
	}
	return nil
}

func (a *audit) put(e *AuditEntry) error {
	if a.to == nil {
		a.log.Warn("console: audit", "id", e.ID, "who", e.Who, "from", e.From, "action", e.Action, "kind", e.Kind,
			"lock", e.Name, "token", e.Token, "client", e.Client, "owner", e.Owner, "result", e.Result, "err", e.Error)
		return nil
	}
	line, err := json.Marshal(e)
	if err != nil {
		return err
	}
	_, err = a.to.Write(append(line, '\n'))
	return err
}

// auditAnswer is what the page shows.
type auditAnswer struct {
	Entries []AuditEntry `json:"entries"` // newest first
}

// serveAudit answers with the last entries of this process.
func (con *Console) serveAudit(w http.ResponseWriter, _ *http.Request) {
	con.audit.mu.Lock()
	shown := auditAnswer{[]AuditEntry{}}
	for i := len(con.audit.entries) - 1; i >= 0 && len(shown.Entries) < keptEntries; i-- {
		shown.Entries = append(shown.Entries, con.audit.entries[i])
	}
	con.audit.mu.Unlock()
	answer(w, http.StatusOK, shown)
}
