// Who holds a lock: the one request that is about a lock and not about a lease of the client's own.

package lockapi

import (
	"context"
	"net/http"

	"github.com/interlock-go/interlock"
)

// lockObject is a lock as the engine sees it.
type lockObject struct {
	Name    string          `json:"name"`
	Held    bool            `json:"held"`
	Holders []*holderObject `json:"holders"`
	Waiters int             `json:"waiters"` // of the clients of one server the engine knows only the first
}

// lock tells who holds a lock and how many wait, whoever took it. It costs one look at the engine.
func (s *Server) lock(w http.ResponseWriter, r *http.Request, _ string) error {
	name := r.URL.Query().Get("name")
	if name == "" {
		return invalid("the query needs name, the name of a lock")
	}
	ctx, cancel := context.WithTimeout(r.Context(), s.o.Timeout)
	defer cancel()
	info, err := s.locks.Look(ctx, interlock.KindMutex, name)
	if err != nil {
		return err
	}
	if info.Unreadable != "" {
		return problemf(http.StatusBadGateway, "refused", info.Unreadable)
	}
	o := lockObject{Name: name, Holders: []*holderObject{}, Waiters: len(info.Waiters)}
	for _, h := range info.Holders {
		o.Holders = append(o.Holders, holderOf(h.Owner, h.Client, h.Label, h.Token, h.Since, h.Until))
	}
	o.Held = len(o.Holders) > 0
	answer(w, http.StatusOK, o)
	return nil
}
