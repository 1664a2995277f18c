package shell

import (
	"context"
	"log/slog"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/core"
)

// config is what a client was configured with: the Options of the package above that are needed after New.
type Config struct {
	Lease, Renewal, Retain, CloseTimeout, LocalHandoffTime time.Duration
	LocalHandoffs                                          int
	ClientName, Store                                      string
	LabelFrom                                              func(ctx context.Context, label string) string
	Logger                                                 *slog.Logger // guarded
	Observer                                               *Listeners
}

// listeners are the functions of the Observer of the package above; what it lacks is nil.
type Listeners struct {
	Waiting, Acquired, Upgraded, Failed func(ctx context.Context, e Facts)

	Renewed, RenewalFailed, Lost, Released, Retained, RetentionEnded, Recalled, Settling, Settled func(e Facts)
}

// facts are what an Event of the package above says; the fields are described there.
type Facts struct {
	Kind                driver.Kind
	Name, Class, Engine string
	Owner               string
	Token               uint64
	Hold                *core.Hold         // which hold it is
	Call                *core.Announcement // which call it is, if it had to wait

	Waited, Held, Remained, Margin time.Duration

	Queued, Cond, Local, Late, Undo bool

	Reason driver.LostReason
	Err    error

	Client *Client // which tells it
}
