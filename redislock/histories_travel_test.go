package redislock

import (
	"context"
	"fmt"

	"github.com/interlock-go/interlock/driver"
)

// adopt gives a hold, mostly a live one, to a request of another client.
func (h *history) adopt() {
	from := h.pick()
	if from == nil {
		return
	}
	r, client := h.request(from.req.Key), h.draw(clients)
	r.Client, r.Owner, r.Named, r.Try = fmt.Sprint("client ", client), "process "+r.ID, false, true
	h.note("%s adopts %s %q %s, by client %d", r.ID, r.Kind, r.Name, from.req.ID, client)
	h.ids = append(h.ids, h.begin(&twin{req: r, client: client, adopts: from.req.ID}))
}

// resize changes how many permits there are.
func (h *history) resize() {
	for _, key := range h.keys {
		if key.Kind != driver.KindSemaphore {
			continue
		}
		limit, client := 1+h.draw(5), h.draw(clients)
		err := h.both(fmt.Sprintf("resize %s %q to %d, by client %d", key.Kind, key.Name, limit, client),
			func(ctx context.Context, side int) error { return h.engines[side][client].Resize(ctx, key, limit) })
		if err == nil {
			h.limit = limit
		}
	}
}
