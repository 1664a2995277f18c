package driver

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// Handles: a hold as a text, by which another process goes on with it (Adopter).

// Handle is a hold as it is given to another process: all that is needed to adopt, renew or release it. Whoever has it
// can do so, so it is a secret; it has no password of the store in it.
type Handle struct {
	Version int           `json:"v"`           // see Encode, which sets it
	Engine  string        `json:"e,omitempty"` // Traits.Engine; empty from versions that did not say it
	Store   string        `json:"s,omitempty"` // a hash that tells stores apart; empty if it is not known
	Kind    Kind          `json:"k"`           // of the lock
	Name    string        `json:"n"`           // of the lock
	Mode    Mode          `json:"m,omitempty"` // in which it is held
	Limit   int           `json:"c,omitempty"` // of a semaphore
	Weight  int           `json:"w,omitempty"` // permits of it
	ID      string        `json:"i"`           // of the request that was granted
	Token   uint64        `json:"t"`           // the fencing token of the hold
	Lease   time.Duration `json:"l"`           // the lock's lease, in nanoseconds in JSON
	Owner   string        `json:"o"`           // the id of the owner
	Named   bool          `json:"d,omitempty"` // Owner was named by the program
	Label   string        `json:"b,omitempty"` // what operators see beside the owner
}

// handleVersion is the version that Encode writes. ParseHandle refuses every other.
const handleVersion = 1

var errNoHandle = errors.New("this is not a handle, or not all of it")

// Encode returns the handle as one word of ASCII letters, digits, "-" and "_".
func (h Handle) Encode() string {
	h.Version = handleVersion
	plain, _ := json.Marshal(h) // strings and numbers: cannot fail
	return base64.RawURLEncoding.EncodeToString(plain)
}

// ParseHandle reads what Encode has written. A text that is no handle is an error; the error of a handle of another
// version matches [ErrUnsupported].
func ParseHandle(s string) (Handle, error) {
	var h Handle
	plain, err := base64.RawURLEncoding.DecodeString(s)
	if err != nil || json.Unmarshal(plain, &h) != nil {
		return Handle{}, errNoHandle
	}
	switch {
	case h.Version != handleVersion && h.Version != 0:
		return Handle{}, fmt.Errorf("the handle was made by another version of interlock (%d, this one knows %d): %w",
			h.Version, handleVersion, ErrUnsupported)
	case h.Version == 0 || h.ID == "" || h.Name == "" || h.Lease <= 0 || h.Mode > Upgradeable:
		return Handle{}, errNoHandle
	}
	return h, nil
}

// Of says why the handle means nothing to the engine with these traits, or nil.
func (h Handle) Of(t Traits) error {
	if h.Engine != "" && h.Engine != t.Engine {
		return fmt.Errorf("the handle is of a hold on %s, and this is %s: %w", h.Engine, t.Engine, ErrUnsupported)
	}
	return nil
}
