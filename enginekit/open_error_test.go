package enginekit

import (
	"errors"
	"io"
	"testing"

	"github.com/interlock-go/interlock/driver"
)

func TestOpenError_SaysWhoAndWhyAndWhatToDo(t *testing.T) {
	for want, e := range map[string]OpenError{
		"word: cannot use a:1,b:1: EOF":          {},
		"word: cannot use a:1,b:1: EOF (do it)":  {Hint: "do it"},
		"word: cannot use a:1,b:1: gone (do it)": {Hint: "do it", Text: "gone", Refused: true},
	} {
		e.Engine, e.Servers, e.Err = "word", "a:1,b:1", io.EOF
		if got := e.Error(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestOpenError_IsARefusal_OnlyIfTheServersHaveSaidNo(t *testing.T) {
	silent := error(&OpenError{Engine: "word", Servers: "a:1", Err: io.EOF, Hint: "do it"})
	if !errors.Is(silent, driver.ErrUnavailable) || errors.Is(silent, driver.ErrRefused) || !errors.Is(silent, io.EOF) {
		t.Errorf("of servers that are out of reach: %v", silent)
	}
	if driver.Refusal(silent) != nil {
		t.Error("it counts as a refusal")
	}
	denied := error(&OpenError{Engine: "word", Servers: "a:1", Err: io.EOF, Hint: "do it", Refused: true})
	if !errors.Is(denied, driver.ErrUnavailable) || !errors.Is(denied, driver.ErrRefused) ||
		!errors.Is(denied, io.EOF) {
		t.Errorf("of servers that have said no: %v", denied)
	}
	if refused := driver.Refusal(denied); refused == nil || refused.Op != "open" || refused.Hint != "do it" ||
		refused.Open {
		t.Errorf("the refusal is %+v", refused)
	}
}
