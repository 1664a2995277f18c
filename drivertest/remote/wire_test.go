package remote

import (
	"errors"
	"testing"

	"github.com/interlock-go/interlock/driver"
)

func TestErrors_KeepTheirClass(t *testing.T) {
	why := errors.New("why")
	for _, err := range []error{
		&driver.RefusedError{Err: why, Hint: "do this"},
		&driver.RefusedError{Err: why, Open: true},
		&driver.UnavailableError{Err: why, NotSent: true},
		&driver.UnavailableError{Err: why},
		errors.Join(&driver.RefusedError{Err: why}, &driver.UnavailableError{Err: why}),
	} {
		got := pack(err).unpack()
		if driver.IsDefinite(got) != driver.IsDefinite(err) || driver.IsNotSent(got) != driver.IsNotSent(err) ||
			got.Error() != err.Error() {
			t.Errorf("%v arrives as %v", err, got)
		}
		want, refusal := driver.Refusal(err), driver.Refusal(got)
		if (want == nil) != (refusal == nil) ||
			want != nil && (want.Hint != refusal.Hint || want.Open != refusal.Open) {
			t.Errorf("%v arrives as the refusal %v", err, refusal)
		}
	}
}
