package redislock

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/servers"
	"github.com/redis/rueidis"
)

// retain renews a hold that nobody has any more.
func retain(t *testing.T, d *Driver, r *driver.Request, pass int, lease time.Duration) {
	t.Helper()
	b := renewalOf(r, lease)
	b.Retained, b.Pass = true, pass
	if err := renewOne(t.Context(), d, b); err != nil {
		t.Fatal(err)
	}
}

// seenHolder is who holds the lock as operators see it, in its list and by itself.
func seenHolder(t *testing.T, d *Driver, key driver.Key) driver.Holder {
	t.Helper()
	info, err := d.Look(t.Context(), key)
	if err != nil || len(info.Holders) != 1 {
		t.Fatalf("it is seen as %+v, %v", info, err)
	}
	for listed, err := range d.Locks(t.Context(), key.Name) {
		if err != nil || len(listed.Holders) != 1 || listed.Holders[0].Retained != info.Holders[0].Retained {
			t.Errorf("listed as %+v, %v, seen as %+v", listed, err, info)
		}
	}
	return info.Holders[0]
}

func TestRetained_IsSeenWithoutAnOwner_OnAShortLease_UntilItIsTakenOver(t *testing.T) {
	solo, cluster := soloOption(servers.Redis(t)), clusterOption(servers.RedisCluster(t, 3, 0, nil))
	for name, o := range map[string]rueidis.ClientOption{"alone": solo, "in a Cluster": cluster} {
		for _, queue := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, with a queue %v", name, queue), func(t *testing.T) { checkRetained(t, o, queue) })
		}
	}
}

func checkRetained(t *testing.T, o rueidis.ClientOption, queue bool) {
	t.Helper()
	a, b := opened(t, o), opened(t, o)
	r, wanted := retaining(fmt.Sprint("holder-", queue), lockRequest("", fmt.Sprint("lock ", queue)).Key)
	r.Label = `a label {"r":2,`
	holding(t, a, r)
	if queue {
		if _, err := waiting(t.Context(), b, lockRequest("waits", r.Name)); err != nil {
			t.Fatal(err)
		}
	}
	if h := seenHolder(t, b, r.Key); h.Retained || h.Owner != r.Owner || time.Until(h.Until) < 15*time.Second {
		t.Errorf("before that it is seen as %+v", h)
	}
	retain(t, a, r, 1, 2*time.Second)
	h := seenHolder(t, b, r.Key)
	if left := time.Until(h.Until); !h.Retained || h.Owner != "" || h.Client != "test" || h.Label != r.Label ||
		left > 3*time.Second {
		t.Errorf("it is seen as %+v", h)
	}
	_, err := b.Acquire(t.Context(), trying(r.ID+"-try", r.Key))
	wantHeld(t, "a try", err, true)
	isWanted(t, "a try", wanted)

	later := renewalOf(r, 20*time.Second)
	later.Pass = 2
	if err := renewOne(t.Context(), a, later); err != nil {
		t.Fatal(err)
	}
	retain(t, a, r, 1, 2*time.Second) // late: sent before that, when nobody held the lock
	h = seenHolder(t, b, r.Key)
	if left := time.Until(h.Until); h.Retained || h.Owner != r.Owner || left < 15*time.Second {
		t.Errorf("taken over it is seen as %+v", h)
	}
	_, err = b.Acquire(t.Context(), trying(r.ID+"-again", r.Key))
	wantHeld(t, "a try", err, true) // it has its mark still
}

// An operator takes a lock that nobody holds as any other.
func TestRetained_IsBroken_AndItsClientIsTold(t *testing.T) {
	o := soloOption(servers.Redis(t))
	a, b := opened(t, o), opened(t, o)
	r, _ := retaining("holder", lockRequest("", "lock").Key)
	lost := make(chan driver.LostReason, 1)
	r.Lost = func(reason driver.LostReason, _ error) { lost <- reason }
	g := holding(t, a, r)
	retain(t, a, r, 0, 2*time.Second)
	if err := b.Break(t.Context(), r.Key, g.Token); err != nil {
		t.Fatal(err)
	}
	select {
	case reason := <-lost:
		if reason != driver.LostBroken {
			t.Errorf("it was told: %s", reason)
		}
	case <-time.After(15 * time.Second):
		t.Error("its client is not told")
	}
	holding(t, b, lockRequest("next", "lock"))
}

// Only holds that nobody else can share or re-enter are marked.
func TestRetains_OfARequestThatOthersShare_LeavesNoMark(t *testing.T) {
	d := opened(t, soloOption(servers.Redis(t)))
	for name, change := range map[string]func(r *driver.Request){
		"shared":   func(r *driver.Request) { r.Kind, r.Mode = driver.KindRWMutex, driver.Shared },
		"read":     func(r *driver.Request) { r.Kind, r.Mode = driver.KindRWMutex, driver.Upgradeable },
		"named":    func(r *driver.Request) { r.Named = true },
		"as ever":  func(r *driver.Request) { r.Retains = false },
		"retained": func(*driver.Request) {},
	} {
		r, _ := retaining("id-of-"+strings.ReplaceAll(name, " ", "-"), lockRequest("", name).Key)
		r.Weight = 1
		change(r)
		holding(t, d, r)
		if err := renewOne(t.Context(), d, renewalOf(r, r.Lease)); err != nil {
			t.Fatal(err)
		}
		other := trying("try-"+r.ID, r.Key)
		_, err := d.Acquire(t.Context(), other)
		wantHeld(t, name, err, name == "retained")
	}
}

// attentive is a puppet that notes what it is told to attend to.
type attentive struct {
	*puppet
	told []bool
}

func (a *attentive) Attend(on bool) { a.told = append(a.told, on) }

func TestRetains_WhileThereIsSuchAHold_PushesAreSeenAtOnce(t *testing.T) {
	p := &attentive{puppet: &puppet{begin: time.Now(), listen: -1}}
	d, err := start(t.Context(), p, &Options{Check: CheckNone})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	hold := func(id string, retains bool, during string) {
		t.Helper()
		p.answer = func(c *Call) Reply {
			if during != "" {
				p.handler.Pushed(1, p.channel, during)
			}
			return p.grants(c, 1, 0)
		}
		r, _ := retaining(id, lockRequest(id, "lock of "+id).Key)
		r.Retains = retains
		holding(t, d, r)
	}
	release := func(id string) {
		t.Helper()
		p.answer = func(*Call) Reply { return Reply{Text: "ok"} }
		if err := d.Release(t.Context(), releaseOf(lockRequest(id, "lock of "+id))); err != nil {
			t.Fatal(err)
		}
	}
	want := func(what string, all ...bool) {
		t.Helper()
		if !slices.Equal(p.told, all) {
			t.Errorf("%s: it was told %v, want %v", what, p.told, all)
		}
	}
	hold("plain", false, "")
	hold("broken-early", true, "B broken-early 1")
	want("holds that cannot be retained")
	hold("a", true, "")
	hold("b", true, "")
	hold("a", true, "") // a copy
	want("two that can", true)
	release("a")
	want("one of them", true)
	release("a")
	release("plain")
	want("still one", true)
	p.handler.Pushed(1, p.channel, "B b 1")
	want("none", true, false)
	hold("c", true, "")
	release("c")
	want("another", true, false, true, false)
}
