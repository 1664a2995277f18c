package driver

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
)

func TestErrors_OfEachClass_SayWhatIsKnownOfTheOutcome(t *testing.T) {
	why := errors.New("NOPERM")
	refused, open := &RefusedError{Err: why}, &RefusedError{Err: why, Open: true}
	unsent, unknown := &UnavailableError{Err: why, NotSent: true}, &UnavailableError{Err: why}
	for _, c := range []struct {
		name                       string
		err                        error
		definite, refused, notSent bool
	}{
		{"refused", refused, true, true, false},
		{"refused, inside another error", fmt.Errorf("lock: %w", refused), true, true, false},
		{"refused, and a copy may be left", open, false, true, false},
		{"refused, joined with the sentinel", errors.Join(refused, ErrUnavailable), false, false, false},
		{"refused, joined with the unknown", errors.Join(refused, unknown), false, false, false},
		{"a cause of the unknown", &UnavailableError{Err: refused}, false, false, false},
		{"refused because of something unknown", &RefusedError{Err: unknown}, true, true, false},
		{"refused, joined with what was not sent", errors.Join(refused, unsent), true, true, false},
		{"refused as the context ended", errors.Join(context.Canceled, refused), true, true, false},
		{"not sent", unsent, false, false, true},
		{"not sent, joined with the unknown", errors.Join(unsent, unknown), false, false, false},
		{"unknown", unknown, false, false, false},
		{"the sentinel", ErrUnavailable, false, false, false},
		{"held", &HeldError{}, true, false, false},
		{"raw", why, false, false, false},
		{"none", nil, false, false, false},
	} {
		if got := IsDefinite(c.err); got != c.definite {
			t.Errorf("%s: IsDefinite says %v", c.name, got)
		}
		if got := Refusal(c.err) != nil; got != c.refused {
			t.Errorf("%s: Refusal says %v", c.name, got)
		}
		if got := IsNotSent(c.err); got != c.notSent {
			t.Errorf("%s: IsNotSent says %v", c.name, got)
		}
	}
	for text, err := range map[string]error{
		`lock "a": the engine refused, and nothing was changed: NOPERM (do this)`: &RefusedError{
			"lock", "a", why, "do this", false,
		},
		`lock "a": the engine refused: NOPERM`: &RefusedError{"lock", "a", why, "", true},
		`open: the engine cannot be reached, so nothing was done: NOPERM`: &UnavailableError{
			Op: "open", Err: why, NotSent: true,
		},
		`unlock "a": the engine cannot be reached, so it has not heard of the release: NOPERM`: &UnavailableError{
			Op: "unlock", Name: "a", Err: why, NotSent: true,
		},
		`lock "a": the engine did not answer, so the outcome is unknown: NOPERM`: &UnavailableError{
			Op: "lock", Name: "a", Err: why,
		},
	} {
		if err.Error() != text || !errors.Is(err, ErrUnavailable) ||
			errors.Is(err, ErrRefused) != strings.Contains(text, "refused") {
			t.Errorf("got %q, want %q", err, text)
		}
	}
}
