package terraformlock

import (
	"encoding/json"
	"errors"
	"net/http"

	"github.com/interlock-go/interlock"
)

// get answers with a state. That there is none yet is 404, which Terraform takes as an empty state.
func (b *Backend) get(w http.ResponseWriter, state string) {
	text, err := b.states.read(state)
	switch {
	case err != nil:
		http.Error(w, err.Error(), http.StatusInternalServerError)
	case text == nil:
		http.Error(w, "there is no such state yet", http.StatusNotFound)
	default:
		w.Header().Set("Content-Type", "application/json")
		b.writeAll(w, text)
	}
}

// write writes a state, or removes it, for the run that has the lock. Who uses no locks takes it for the length of
// this request.
func (b *Backend) write(w http.ResponseWriter, r *http.Request, state string, keeps bool) {
	var text []byte
	if keeps {
		var ok bool
		if text, ok = b.readAll(w, r, b.o.MaxState); !ok {
			return
		}
		if !json.Valid(text) {
			http.Error(w, "a state is JSON", http.StatusBadRequest)
			return
		}
	}
	lease, done, err := b.mayWrite(r, state)
	if err != nil {
		b.refuse(w, state, err)
		return
	}
	defer done()
	stamp, ok := lease.Stamp()
	if !ok {
		b.refuse(w, state, lease.Err())
		return
	}
	err = b.states.write(r.Context(), state, stamp.Token, text)
	switch {
	case errors.As(err, new(*staleError)):
		http.Error(w, err.Error(), http.StatusPreconditionFailed)
	case err != nil:
		http.Error(w, err.Error(), http.StatusInternalServerError)
	}
}

// mayWrite returns the lease of who writes, and what ends it if it was taken for this request.
func (b *Backend) mayWrite(r *http.Request, state string) (*interlock.Lease, func(), error) {
	id := r.URL.Query().Get("ID")
	b.mu.Lock()
	now := b.held[state]
	b.mu.Unlock()
	switch {
	case now != nil && now.id == id:
		return now.lease, func() {}, now.lease.Err()
	case id != "":
		return nil, nil, &interlock.LostError{
			Kind: interlock.KindMutex, Name: prefix + state, Reason: interlock.LostExpired,
		}
	}
	lease, err := b.mutex(state, "without a lock").TryLock(r.Context())
	return lease, func() { _ = lease.Unlock(r.Context()) }, err
}
