package console

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/interlock-go/interlock"
)

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
