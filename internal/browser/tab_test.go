package browser

import (
	"context"
	"errors"
	"testing"
	"time"
)

func TestMain(m *testing.M) { Main(m) }

func TestCall_OfAPageWhoseScriptDoesNotEnd_EndsInTime(t *testing.T) {
	p := New(t, 800, 600)
	p.Go("data:text/html,<p>here</p>")
	p.Shows("p", "here")
	p.patience = time.Second
	if _, err := evaluate[bool](p, "{while (true);}"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the page answers, with the error %v", err)
	}
}
