package zklock

import (
	"context"
	"net"
	"testing"
	"time"
)

// A server that accepts connections and says nothing is not taken leave of for longer than it was asked.
func TestNew_OfAServerThatHangs_ReturnsWithItsContext(t *testing.T) {
	mute, err := net.Listen("tcp", "127.0.0.1:0") // the system accepts
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = mute.Close() }()
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	ended := make(chan time.Time, 1)
	// a machine under load lets this goroutine wait as long as the other
	context.AfterFunc(ctx, func() { ended <- time.Now() })
	_, err = New(ctx, []string{mute.Addr().String()}, nil)
	returned := time.Now()
	if err == nil {
		t.Error("a server that says nothing was opened")
	}
	if late := returned.Sub(<-ended); late > 250*time.Millisecond { // it was half a second and more
		t.Errorf("New returned %v after its context had ended", late)
	}
}
