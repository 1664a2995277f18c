package console

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/console/board"
	"github.com/interlock-go/interlock/driver"
)

// defaultLimit is how many locks one answer has unless it is asked for more.
const defaultLimit = 5000

// serveBoard answers with a board that is at most one interval old, or with a part of it.
func (con *Console) serveBoard(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	limit := defaultLimit
	if s := q.Get("limit"); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil || n < 1 {
			refuse(w, http.StatusBadRequest, fmt.Sprintf("limit %q is not a positive number", s), "")
			return
		}
		limit = n
	}
	b, err := con.poller.Now(r.Context())
	if err != nil {
		refuse(w, http.StatusServiceUnavailable, err.Error(), "")
		return
	}
	answer(w, http.StatusOK, part(b, q.Get("prefix"), q.Get("after"), limit))
}

// part is a board with only those locks, and the edges at them. Counts, cycles and events stay those of all. Locks of
// one name stay together, so that the next part can begin after the name of the last one.
func part(whole *board.Board, prefix, after string, limit int) *board.Board {
	b := *whole
	locks := whole.Locks
	if prefix != "" {
		from, _ := slices.BinarySearchFunc(locks, prefix, nameOf)
		locks = locks[from:]
		end := slices.IndexFunc(locks, func(l board.Lock) bool { return !strings.HasPrefix(l.Name, prefix) })
		if end >= 0 {
			locks = locks[:end]
		}
		b.Edges = slices.DeleteFunc(slices.Clone(b.Edges), func(e board.Edge) bool {
			return !strings.HasPrefix(e.Name, prefix)
		})
	}
	if after != "" {
		from, _ := slices.BinarySearchFunc(locks, after+"\x00", nameOf)
		locks = locks[from:]
	}
	if len(locks) > limit {
		for limit < len(locks) && locks[limit].Name == locks[limit-1].Name {
			limit++
		}
		b.Truncated = b.Truncated || limit < len(locks)
		locks = locks[:limit]
	}
	b.Locks = locks
	return &b
}

func nameOf(l board.Lock, name string) int { return strings.Compare(l.Name, name) }

// within bounds one question to the engine.
func (con *Console) within(r *http.Request) (context.Context, context.CancelFunc) {
	return context.WithTimeout(r.Context(), con.opts.Timeout)
}

// serveLock looks at one lock now.
func (con *Console) serveLock(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := con.within(r)
	defer cancel()
	q := r.URL.Query()
	info, err := con.client.Look(ctx, driver.Kind(q.Get("kind")), q.Get("name"))
	if err != nil {
		failed(w, err)
		return
	}
	_, lacks := con.client.Traits().Lacking(driver.Waiters)
	answer(w, http.StatusOK, board.LockOf(info, !lacks))
}

// latchCount is the answer about a latch.
type latchCount struct {
	Name  string `json:"name"`
	Count int64  `json:"count"`
}

// serveLatch asks for the count of a latch. Nobody holds a latch, so no list has them.
func (con *Console) serveLatch(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := con.within(r)
	defer cancel()
	name := r.URL.Query().Get("name")
	n, err := con.client.Latch(name).Count(ctx)
	if err != nil {
		failed(w, err)
		return
	}
	answer(w, http.StatusOK, latchCount{name, n})
}

// serveDoctor checks the engine. It takes a lock for a moment, so one check at a time is enough.
func (con *Console) serveDoctor(w http.ResponseWriter, r *http.Request) {
	if con.opts.Doctor == nil {
		refuse(w, http.StatusNotImplemented, "this program has no check of the engine", "run interlock doctor")
		return
	}
	if !con.examining.TryLock() {
		refuse(w, http.StatusTooManyRequests, "a check is under way", "try again in a moment")
		return
	}
	defer con.examining.Unlock()
	// On a slow engine it takes longer than the server may allow for an answer.
	_ = http.NewResponseController(w).SetWriteDeadline(time.Time{})
	found, err := con.opts.Doctor(r.Context())
	if err != nil {
		failed(w, err)
		return
	}
	answer(w, http.StatusOK, found)
}

// refusal is the answer to what was not done.
type refusal struct {
	Error string `json:"error"`
	Hint  string `json:"hint"` // what to do about it; empty if nothing
}

func refuse(w http.ResponseWriter, status int, why, hint string) {
	answer(w, status, refusal{why, hint})
}

// answer sends v as JSON.
func answer(w http.ResponseWriter, status int, v any) {
	text, err := json.Marshal(v)
	if err != nil { // of a doctor of the program's own, at most
		status, text = http.StatusInternalServerError, []byte(`{"error":"the answer is no JSON","hint":""}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(text, '\n')) // whoever has gone needs no answer
}

// failed answers a question with the error of the engine or the client.
func failed(w http.ResponseWriter, err error) { refuse(w, statusOf(err), err.Error(), "") }

// statusOf finds the status of an error, which may match several.
func statusOf(err error) int {
	for _, row := range []struct {
		err    error
		status int
	}{
		{interlock.ErrUnsupported, http.StatusNotImplemented},
		{interlock.ErrHeld, http.StatusConflict},
		{interlock.ErrNotHeld, http.StatusConflict},
		{interlock.ErrRefused, http.StatusBadGateway},
		{interlock.ErrUnavailable, http.StatusBadGateway},
		{context.DeadlineExceeded, http.StatusGatewayTimeout},
		{interlock.ErrClosed, http.StatusServiceUnavailable},
	} {
		if errors.Is(err, row.err) {
			return row.status
		}
	}
	return http.StatusBadRequest
}
