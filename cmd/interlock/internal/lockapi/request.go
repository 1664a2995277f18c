// Reading a request's body. Every mistake in it is a problem that says what is wrong.

package lockapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"mime"
	"net/http"
	"time"
)

// maxBody is more than any request has, in bytes: a name of 512 bytes, each written as an escape of 6, and the rest.
const maxBody = 8 << 10

// invalid is the problem of a request that is wrong in itself.
func invalid(detail string) error { return problemf(http.StatusBadRequest, "request", detail) }

// readJSON reads the body, which is one object without unknown fields. The content type is checked because browsers ask
// the server before they send JSON to another site, and do not ask before they send a form: so a foreign web page
// cannot take locks.
func readJSON(w http.ResponseWriter, r *http.Request, into any, mayBeEmpty bool) error {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return problemf(http.StatusRequestEntityTooLarge, "large", fmt.Sprintf("at most %d bytes are allowed", maxBody))
	case err != nil:
		return invalid("the body did not arrive whole")
	case len(body) == 0 && mayBeEmpty:
		return nil
	}
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return problemf(http.StatusUnsupportedMediaType, "media", "send Content-Type: application/json")
	}
	return decode(body, into)
}

// decode reads one JSON value into a struct.
func decode(body []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return invalid(err.Error())
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return invalid("the body has more than one JSON value")
	}
	return nil
}

// seconds reads a duration in seconds, and rounds it to milliseconds. absent is the duration of a field that is not
// there.
func seconds(field string, given *float64, absent, least, most time.Duration) (time.Duration, error) {
	if given == nil {
		return absent, nil
	}
	if *given < least.Seconds() || *given > most.Seconds() {
		return 0, invalid(fmt.Sprintf("%s must be from %v to %v seconds", field, least.Seconds(), most.Seconds()))
	}
	return time.Duration(math.Round(*given*1000)) * time.Millisecond, nil
}
