package play

import (
	"errors"
	"testing"

	"github.com/interlock-go/interlock/internal/servers"
)

// Alone runs f outside of a test, ends what it started, and returns what it failed with; [servers.ErrMissing] if a
// server is not installed.
func Alone(f func(t testing.TB)) error {
	stage, err := servers.NewStage()
	if err != nil {
		return err
	}
	return errors.Join(stage.Play(f), stage.Close())
}
