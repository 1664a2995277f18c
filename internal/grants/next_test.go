package grants

import (
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/trust"
)

// What becomes of a grant that nobody holds any more: every rule of Next, and for each what it comes before.
func TestNext(t *testing.T) {
	env := func(life driver.Lifetime) *Env {
		return &Env{Lifetime: life, LocalHandoffs: 3, LocalHandoffTime: 10 * time.Millisecond}
	}
	const now = trust.Instant(time.Second)
	live := Grant{
		Phase: Live, Tokens: 64, Since: now - 100, Window: trust.Window{Sent: now - 100, Lease: 30 * time.Second},
	}
	with := func(f func(*Grant)) Grant { g := live; f(&g); return g }
	recallable := with(func(g *Grant) { g.Recallable = true })
	line := Around{Waiting: true, CanRequeue: true, CanRetain: true}
	for _, tc := range []struct {
		name  string
		g     Grant
		life  driver.Lifetime
		a     Around
		want  Next
		terms Terms
	}{
		{name: "nobody waits", g: live, want: GiveBack},
		{name: "nobody waits, and others would tell", g: recallable, a: Around{CanRetain: true}, want: Retain},
		{
			name: "they have told",
			g:    with(func(g *Grant) { g.Recallable, g.Recalled = true, true }), a: Around{CanRetain: true},
		},
		{name: "the client is closed", g: recallable, want: GiveBack},
		{name: "somebody waits", g: live, a: line, want: PassOn},
		{name: "somebody waits: before retention", g: recallable, a: line, want: PassOn},
		{
			name: "abandoned: before everything",
			g:    with(func(g *Grant) { g.Phase = Abandoned }), a: line, want: RunOut,
		},
		{name: "cooldown: before waiters", g: live, a: Around{Waiting: true, Cooldown: 1}, want: GiveBack},
		{
			name: "cooldown: before retention",
			g:    recallable, a: Around{CanRetain: true, Cooldown: 1}, want: GiveBack,
		},
		{
			name: "cooldown of a session",
			g:    live, life: driver.Process, a: Around{Waiting: true, Cooldown: 1}, want: KeepClosed,
		},
		{name: "passed on too often", g: with(func(g *Grant) { g.Pass = 3 }), a: line, want: Requeue},
		{name: "for too long", g: with(func(g *Grant) { g.Since = 0 }), a: line, want: Requeue},
		{
			name: "too long, but nobody outside waits",
			g:    with(func(g *Grant) { g.Since, g.Recallable = 0, true }), a: line, want: PassOn,
		},
		{name: "no token left", g: with(func(g *Grant) { g.Tokens = 1 }), a: line, want: Requeue},
		{name: "in doubt", g: with(func(g *Grant) { g.Failed = true }), a: line, want: Requeue},
		{
			name: "it cannot requeue",
			g:    with(func(g *Grant) { g.Failed = true }), a: Around{Waiting: true, CanRetain: true},
		},
		{
			name: "too little trust",
			g:    with(func(g *Grant) { g.Window.Lease = 5 * time.Second }), a: line, want: RenewFirst,
		},
		{
			name: "still too little", g: with(func(g *Grant) { g.Window.Lease = 5 * time.Second }),
			a: Around{Waiting: true, CanRequeue: true, Renewed: true}, want: Requeue,
		},
		{name: "too much", g: with(func(g *Grant) { g.Window.Lease = time.Hour }), a: line, want: Requeue},
		{
			name: "too much, it cannot requeue, and could be retained",
			g:    with(func(g *Grant) { g.Recallable, g.Window.Lease = true, time.Hour }),
			a:    Around{Waiting: true, CanRetain: true},
		},
		{name: "alone", g: with(func(g *Grant) { g.Alone = true }), a: line, want: GiveBack},
	} {
		life, terms := tc.life, tc.terms
		if life == 0 {
			life = driver.Leases
		}
		terms.Lease = 30 * time.Second
		if got := tc.g.Next(env(life), &terms, now, tc.a); got != tc.want {
			t.Errorf("%s: %d, want %d", tc.name, got, tc.want)
		}
	}
}

func BenchmarkNext(b *testing.B) {
	e := &Env{Lifetime: driver.Leases, LocalHandoffs: 255, LocalHandoffTime: time.Hour}
	terms := &Terms{Lease: 30 * time.Second}
	g := Grant{Phase: Live, Tokens: 64, Window: trust.Window{Lease: 30 * time.Second}}
	for b.Loop() {
		if g.Next(e, terms, 1, Around{Waiting: true}) != PassOn {
			b.Fatal()
		}
	}
}
