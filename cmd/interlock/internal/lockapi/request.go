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
	"reflect"
	"strings"
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

// decode reads one JSON object into a struct. Names of fields are taken as openapi.json writes them: package json would
// take "TTL" for "ttl", and of two that differ in case the last. It says what is wrong in the words of the description,
// which knows no types of Go.
func decode(body []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(body))
	if start, err := d.Token(); err != nil {
		return notJSON(err)
	} else if start != json.Delim('{') {
		return invalid("the body must be a JSON object")
	}
	fields := fieldsOf(into)
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return notJSON(err)
		}
		name, _ := key.(string) // a key of an object is nothing else
		field, known := fields[name]
		if !known {
			return invalid(fmt.Sprintf("the field %q is unknown, or there twice", name))
		}
		delete(fields, name)
		if err := d.Decode(field.Interface()); err != nil {
			return invalidField(name, field, err)
		}
	}
	if _, err := d.Token(); err != nil { // the end of the object
		return notJSON(err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return invalid("the body has more than one JSON value")
	}
	return nil
}

// fieldsOf returns pointers to the fields of the struct to which into points, by their names in JSON.
func fieldsOf(into any) map[string]reflect.Value {
	v, all := reflect.ValueOf(into).Elem(), map[string]reflect.Value{}
	for n := range v.NumField() {
		name, _, _ := strings.Cut(v.Type().Field(n).Tag.Get("json"), ",")
		all[name] = v.Field(n).Addr()
	}
	return all
}

// invalidField says what a field must be.
func invalidField(name string, field reflect.Value, err error) error {
	if !errors.As(err, new(*json.UnmarshalTypeError)) {
		return notJSON(err)
	}
	kind := "string"
	if _, number := field.Interface().(**float64); number {
		kind = "number"
	}
	return invalid(name + " must be a " + kind)
}

// notJSON says where the body stops being JSON.
func notJSON(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return invalid("the body ends in the middle of the JSON object")
	}
	return invalid("the body is not JSON: " + err.Error())
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
