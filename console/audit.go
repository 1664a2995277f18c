package console

import (
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/interlock-go/interlock/driver"
)

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
