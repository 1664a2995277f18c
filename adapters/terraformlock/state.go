package terraformlock

import (
	"context"
	"crypto/md5" //nolint:gosec // what Terraform sends
	"encoding/base64"
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
		if wrong := digestMismatch(r, text); wrong != "" {
			http.Error(w, wrong, http.StatusBadRequest)
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

// digestMismatch says what is wrong with a body whose digest Terraform has sent beside it, or returns "". A length is
// checked by HTTP; a proxy that changes bytes is noticed only so.
func digestMismatch(r *http.Request, text []byte) string {
	said := r.Header.Get("Content-MD5")
	if said == "" {
		return ""
	}
	sum := md5.Sum(text) //nolint:gosec // what Terraform sends; it guards against accidents, not against attackers
	if said != base64.StdEncoding.EncodeToString(sum[:]) {
		return "the state is not the one that was sent: its Content-MD5 is " + said + " and should be " +
			base64.StdEncoding.EncodeToString(sum[:])
	}
	return ""
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
		return nil, nil, b.lockedByAnother(r.Context(), state)
	}
	lease, err := b.mutex(state, "without a lock").TryLock(r.Context())
	return lease, func() { _ = lease.Unlock(r.Context()) }, err
}

// lockedByAnother is the error of a run that has not the lock: who has it, or that the run has lost it.
func (b *Backend) lockedByAnother(ctx context.Context, state string) error {
	now, err := b.locks.Look(ctx, interlock.KindMutex, prefix+state)
	if err == nil && len(now.Holders) > 0 {
		h := now.Holders[0]
		return &interlock.HeldError{
			Kind: interlock.KindMutex, Name: prefix + state, Owner: h.Owner, Client: h.Client, Token: h.Token,
		}
	}
	if other := b.holder(state); other != nil { // an engine that cannot be asked
		return &interlock.HeldError{Kind: interlock.KindMutex, Name: prefix + state, Token: other.lease.Token()}
	}
	return &interlock.LostError{Kind: interlock.KindMutex, Name: prefix + state, Reason: interlock.LostExpired}
}
