package crowds_test

import (
	"errors"
	"os"
	"testing"
	"time"

	"github.com/interlock-go/interlock/bench/crowds"
	"github.com/interlock-go/interlock/internal/servers"
)

// BenchmarkCrowds runs each crowd with a hundredth of its number, so that none can rot. Its numbers say nothing.
func BenchmarkCrowds(b *testing.B) {
	short := crowds.Pace{
		Settles: 100 * time.Millisecond, IdleFor: 200 * time.Millisecond,
		Stays: 100 * time.Millisecond, Waits: 100 * time.Millisecond,
	}
	for _, c := range crowds.All(10) {
		b.Run(c.Name, func(b *testing.B) {
			for b.Loop() {
				got, err := c.Measure(b.Context(), short)
				if errors.Is(err, servers.ErrMissing) && os.Getenv("INTERLOCK_REQUIRE") == "" {
					b.Skip(err)
				}
				if err != nil {
					b.Fatal(err)
				}
				if got.Lost+got.Failed > 0 {
					b.Errorf("%d lost, %d failed", got.Lost, got.Failed)
				}
			}
		})
	}
}
