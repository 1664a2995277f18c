package sim

import (
	"math/rand/v2"
	"sync"
	"time"
)

// weather is the state of the network as a whole: how likely messages are lost, repeated and slow, which the seed
// decides, and the storms that the nemesis makes.
type weather struct {
	mu                 sync.Mutex // guards all
	loss, repeat, slow float64

	// The instants at which it is over.
	storm time.Time // a third of the messages is lost
	mud   time.Time // all messages are slow
	stall time.Time // the engine does not look at its messages
}

// newWeather draws how bad the network is in ordinary times.
func newWeather(rng *rand.Rand, conf config) *weather {
	switch {
	case conf.lossy:
		return &weather{loss: 0.04, repeat: 0.04, slow: 0.02}
	case !conf.faults:
		return &weather{}
	}
	return &weather{loss: rng.Float64() * 0.04, repeat: rng.Float64() * 0.04, slow: rng.Float64() * 0.08}
}

// raise makes a storm, a mud or a stall last for d.
func (h *weather) raise(what *time.Time, d time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	*what = time.Now().Add(d)
}

// left returns how long a storm, a mud or a stall goes on.
func (h *weather) left(what *time.Time) time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	return max(0, time.Until(*what))
}

// calm ends what happens by chance.
func (h *weather) calm() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.loss, h.repeat, h.slow = 0, 0, 0
}

// chances returns how likely a message is lost, repeated and slow now.
func (h *weather) chances() (loss, repeat, slow float64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if time.Until(h.storm) > 0 {
		return 0.33, h.repeat, h.slow
	}
	return h.loss, h.repeat, h.slow
}

// loses reports whether a message is lost by chance.
func (h *weather) loses(rng *rand.Rand) bool {
	loss, _, _ := h.chances()
	return rng.Float64() < loss
}

// repeats reports whether a request arrives twice.
func (h *weather) repeats(rng *rand.Rand) bool {
	_, repeat, _ := h.chances()
	return rng.Float64() < repeat
}

// delay draws how long a message is under way.
func (h *weather) delay(rng *rand.Rand) time.Duration {
	_, _, slow := h.chances()
	usual := between(rng, 200*time.Microsecond, 3*time.Millisecond)
	switch {
	case h.left(&h.mud) > 0:
		return usual + 30*time.Millisecond + upTo(rng, 300*time.Millisecond)
	case rng.Float64() < slow:
		return usual + upTo(rng, 250*time.Millisecond)
	}
	return usual
}

// upTo draws a time below most. Its nanoseconds are what keeps actors from acting at the same instant.
func upTo(rng *rand.Rand, most time.Duration) time.Duration {
	return time.Duration(rng.Int64N(int64(most)))
}

// between draws a time from least to most.
func between(rng *rand.Rand, least, most time.Duration) time.Duration {
	return least + upTo(rng, most-least)
}
