package part_test

import (
	"context"
	"errors"
	"io"
	"os"
	"testing"

	"github.com/interlock-go/interlock/examples/internal/part"
)

func TestMain(m *testing.M) {
	part.Play(map[string]func(context.Context, *part.Stage) error{"echo": echo, "fail": fail})
	os.Exit(m.Run())
}

// echo says its argument and then all that it is told, until it is stopped.
func echo(ctx context.Context, s *part.Stage) error {
	var arg string
	err := errors.Join(s.Arg(&arg), s.Send(arg))
	for err == nil {
		var word string
		if err = s.Receive(&word); err == nil {
			err = s.Send(word)
		}
	}
	<-ctx.Done()
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return err
}

func fail(context.Context, *part.Stage) error { return errors.New("on purpose, for a test") }

func TestPart_TalksWithItsParentAndEndsWhenStopped(t *testing.T) {
	a, err := part.Start(t.Context(), "echo", "hello")
	if err != nil {
		t.Fatal(err)
	}
	var first, second string
	if err := errors.Join(a.Receive(&first), a.Send("again"), a.Receive(&second)); err != nil {
		t.Fatal(err)
	}
	if first != "hello" || second != "again" {
		t.Errorf("it says %q and %q; want hello and again", first, second)
	}
	if err := a.Stop(); err != nil {
		t.Error(err)
	}
}

func TestPart_ThatFails_IsAnErrorOfItsParent(t *testing.T) {
	a, err := part.Start(t.Context(), "fail", nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Wait(); err == nil {
		t.Error("the parent takes the failure for a success")
	}
}

func TestKill_EndsThePartAtOnce(t *testing.T) {
	a, err := part.Start(t.Context(), "echo", "hello")
	if err != nil {
		t.Fatal(err)
	}
	a.Kill()
	if err := a.Receive(new(string)); err == nil {
		t.Error("a part that was killed still speaks")
	}
}
