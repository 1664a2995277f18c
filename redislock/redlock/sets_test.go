package redlock

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// pretended is a server as far as marks go.
type pretended struct {
	mark mark
	runs int
}

// restart gives the server a new run, without its data.
func (p *pretended) restart(name string) {
	p.runs++
	run := fmt.Sprintf("%s%03d", name, p.runs)
	run += strings.Repeat("0", 40-len(run))
	p.mark = mark{state: stateBlank, run: run, id: run[:idLength]}
}

// pool is servers that clients share, and what is known of their names.
type pool map[string]*pretended

func newPool(names ...string) pool {
	p := make(pool)
	for _, name := range names {
		p[name] = new(pretended)
		p[name].restart(name)
	}
	return p
}

// member is a client of some of the servers.
type member struct {
	sets *sets
	fit  map[string]bool // of which it counts the votes
}

// joins returns a client that names these servers, and former ones if there are any.
func (p pool) joins(current, former []string) *member {
	var dials []dialer
	for _, name := range unionOf(current, former) {
		dials = append(dials, dialer{
			name: name, former: slices.Contains(former, name), dropped: !slices.Contains(current, name),
		})
	}
	for i := range dials {
		dials[i].address = dials[i].name + ":1"
	}
	return &member{newSets(dials), make(map[string]bool)}
}

// look is guard.look without a server.
func (p pool) look(c *member, i int) error {
	name, _, _ := strings.Cut(c.sets.names[i], ":")
	node := p[name]
	delete(c.fit, name)
	for {
		m := node.mark
		w, err := c.sets.judge(i, &m)
		if err != nil {
			return err
		}
		if w == nil {
			c.fit[name] = true
			return nil
		}
		node.mark = mark{state: stateOK, run: node.mark.run, id: w.id, set: w.set, next: w.next}
	}
}

// lookAll looks at all servers twice: at the first of them before the last has answered.
func (p pool) lookAll(c *member) (err error) {
	for range 2 {
		err = nil
		for i := range c.sets.names {
			err = errors.Join(err, p.look(c, i))
		}
	}
	return err
}

// excludes reports whether no two majorities of the clients are without a common server.
func excludes(a, b *member) bool {
	all := make(map[string]bool)
	for name := range a.fit {
		all[name] = true
	}
	for name := range b.fit {
		all[name] = true
	}
	qa, qb := a.sets.quorum(), b.sets.quorum()
	return len(a.fit) < qa || len(b.fit) < qb || len(all) < qa+qb
}

func isOther(err error) bool {
	var other *setError
	return errors.As(err, &other)
}

func TestSets_ClientsThatNameTheSame_MakeOneSet(t *testing.T) {
	p := newPool("a", "b", "c")
	one, two := p.joins([]string{"a", "b", "c"}, nil), p.joins([]string{"c", "a", "b"}, nil)
	for i := range 2 { // neither has seen all
		if err := errors.Join(p.look(one, i), p.look(two, i)); !errors.Is(err, errIncomplete) {
			t.Fatalf("%v before all nodes are known", err)
		}
	}
	for range 2 {
		for _, i := range []int{2, 1, 0} {
			_, _ = p.look(one, i), p.look(two, i) // the last time counts
		}
	}
	if len(one.fit) != 3 || len(two.fit) != 3 {
		t.Errorf("they may count %v and %v", one.fit, two.fit)
	}
}

func TestSets_OfWhichOneNodeIsOfAnother_KeepTheMajority(t *testing.T) {
	p := newPool("a", "b", "c", "d", "e")
	if err := p.lookAll(p.joins([]string{"a", "b", "c"}, nil)); err != nil {
		t.Fatal(err)
	}
	p["c"].restart("c")
	if err := p.lookAll(p.joins([]string{"c", "d", "e"}, nil)); err != nil {
		t.Fatal(err)
	}
	c := p.joins([]string{"a", "b", "c"}, nil)
	if err := p.lookAll(c); !isOther(err) || !c.fit["a"] || !c.fit["b"] || c.fit["c"] {
		t.Errorf("%v; it counts %v", err, c.fit)
	}
}

// At the first start a server is restarted, and two clients make sets of which one has its ID of before.
func TestSets_OfWhichOneNodeHasAStrayMark_KeepTheMajority(t *testing.T) {
	names := []string{"a", "b", "c", "d", "e"}
	p := newPool(names...)
	one, two := p.joins(names, nil), p.joins(names, nil)
	for i, name := range names { // one has read all, and written none
		m := p[name].mark
		_, _ = one.sets.judge(i, &m)
	}
	p["e"].restart("e")
	for i, name := range names {
		m := p[name].mark
		_, _ = two.sets.judge(i, &m)
	}
	for i := range 4 {
		if err := p.look(one, i); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.look(two, 4); err != nil {
		t.Fatal(err)
	}
	for _, c := range []*member{one, two, p.joins(names, nil), p.joins([]string{"e", "d", "c", "b", "a"}, nil)} {
		if err := p.lookAll(c); !isOther(err) || len(c.fit) != 4 || c.fit["e"] {
			t.Errorf("%v; it counts %v", err, c.fit)
		}
	}
}

// A server that is put into the place of another looks like one that has come back empty, but for its name.
func TestSets_AnEmptyServerOfAnotherName_HasNoVote(t *testing.T) {
	p := newPool("a", "b", "c", "d")
	one := p.joins([]string{"a", "b", "c"}, nil)
	if err := p.lookAll(one); err != nil {
		t.Fatal(err)
	}
	p["d"].mark.state = stateRested
	other := p.joins([]string{"a", "b", "d"}, nil)
	if err := p.lookAll(other); !isOther(err) || other.fit["d"] {
		t.Errorf("%v; it counts %v", err, other.fit)
	}
	p["c"].restart("c")
	again := p.joins([]string{"a", "b", "c"}, nil)
	if err := p.lookAll(again); !errors.Is(err, errRests) || again.fit["c"] {
		t.Errorf("%v of an empty node before it has rested", err)
	}
	p["c"].mark.state = stateRested
	if err := p.lookAll(again); err != nil || !again.fit["c"] {
		t.Errorf("%v of an empty node that has rested", err)
	}
}

// Under a new name a client that has seen the server before knows whose place it has.
func TestSets_AnEmptyServer_IsKnownToAClientThatHasSeenIt(t *testing.T) {
	p := newPool("a", "b", "c")
	if err := p.lookAll(p.joins([]string{"a", "b", "c"}, nil)); err != nil {
		t.Fatal(err)
	}
	p["renamed"] = p["c"]
	one := p.joins([]string{"a", "b", "renamed"}, nil)
	if err := p.lookAll(one); err != nil {
		t.Fatal(err)
	}
	p["c"].restart("c")
	p["c"].mark.state = stateRested
	if err := p.lookAll(one); err != nil {
		t.Errorf("%v", err)
	}
}

// remember reports whether the clients name a server, both of them, that has a set and has not lost its data. Without
// one nothing could tell them of each other.
func (p pool) remember(a, b *member) bool {
	return slices.ContainsFunc(a.sets.names, func(place string) bool {
		name, _, _ := strings.Cut(place, ":")
		return slices.Contains(b.sets.names, place) && p[name].runs == 1 && len(p[name].mark.sets()) > 0
	})
}

// TestSets_ClientsThatDoNotExcludeEachOther_AreTold plays clients of random lists, servers that lose their data, and
// marks of before there were sets.
func TestSets_ClientsThatDoNotExcludeEachOther_AreTold(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	names := []string{"a", "b", "c", "d", "e", "f"}
	for range 1000 {
		p := newPool(names...)
		var clients []*member
		for range 4 {
			random.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
			clients = append(clients, p.joins(names[:3+random.IntN(3)], nil))
		}
		for range 60 {
			c, node := clients[random.IntN(len(clients))], p[names[random.IntN(len(names))]]
			switch random.IntN(12) {
			case 0:
				for name, n := range p {
					if n == node {
						for _, c := range clients { // the connections break
							delete(c.fit, name)
						}
						n.restart(name)
					}
				}
			case 1:
				if node.mark.state == stateBlank {
					node.mark.state = stateRested
				}
			case 2:
				if node.mark.state == stateRested && len(node.mark.sets()) == 0 {
					node.mark.state = stateOK // it has the mark of a program that knows no sets
				}
			default:
				_ = p.look(c, random.IntN(len(c.sets.names)))
			}
		}
		told := make(map[*member]bool)
		for _, c := range slices.Concat(clients, clients) { // after the first time no mark changes any more
			told[c] = isOther(p.lookAll(c))
		}
		for i, a := range clients {
			for _, b := range clients[:i] {
				if p.remember(a, b) && !excludes(a, b) && !told[a] && !told[b] {
					t.Fatalf("%v of %v, and %v of %v", a.fit, a.sets.names, b.fit, b.sets.names)
				}
			}
		}
	}
}

// changes are the lists from which and to which a set is changed.
var changes = []struct{ former, current []string }{
	{[]string{"a", "b", "c"}, []string{"a", "b", "c", "d", "e"}},
	{[]string{"a", "b", "c", "d", "e"}, []string{"a", "b", "c"}},
	{[]string{"a", "b", "c"}, []string{"a", "b", "d"}},
	{[]string{"a", "b", "c"}, []string{"d", "e", "f"}},
	{[]string{"a", "b", "c", "d", "e"}, []string{"a", "b", "f"}},
}

func TestSets_AreChangedByClientsThatNameBoth(t *testing.T) {
	for _, change := range changes {
		t.Run(fmt.Sprint(change.former, " to ", change.current), func(t *testing.T) {
			p := newPool("a", "b", "c", "d", "e", "f")
			old := p.joins(change.former, nil)
			if err := p.lookAll(old); err != nil {
				t.Fatal(err)
			}
			if early := p.joins(change.current, nil); !isOther(p.lookAll(early)) && len(change.current) != 3 {
				t.Fatalf("a client of the current set, before it is one, counts %v", early.fit)
			}
			both := p.joins(change.current, change.former)
			if err := errors.Join(p.lookAll(both), p.lookAll(old)); err != nil {
				t.Fatal(err)
			}
			if len(both.fit) != len(both.sets.names) || len(old.fit) != len(change.former) || !excludes(old, both) {
				t.Errorf("during the change: %v and %v", old.fit, both.fit)
			}
			late, current := p.joins(change.current, change.former), p.joins(change.current, nil)
			if err := errors.Join(p.lookAll(current), p.lookAll(late), p.lookAll(both)); err != nil {
				t.Fatal(err)
			}
			if len(current.fit) != len(change.current) || !excludes(current, both) || !excludes(current, late) {
				t.Errorf("after it: %v, %v and %v", current.fit, both.fit, late.fit)
			}
			if slices.Contains(change.former, "a") && slices.Contains(change.current, "a") && !isOther(p.lookAll(old)) {
				t.Errorf("a client of the former set counts %v", old.fit)
			}
		})
	}
}

// While a server is replaced, the marks of the others name two sets of one size, and both would do for an empty server.
func TestSets_AServerThatComesBackEmptyDuringItsReplacement_StopsNoVotes(t *testing.T) {
	former, current := []string{"a", "b", "c"}, []string{"a", "b", "d"}
	for _, test := range []struct {
		empty string
		lists []string // which the clients name alone
	}{{"c", former}, {"d", current}} {
		t.Run(test.empty, func(t *testing.T) {
			p := newPool("a", "b", "c", "d")
			both := p.joins(current, former)
			if err := errors.Join(p.lookAll(p.joins(former, nil)), p.lookAll(both)); err != nil {
				t.Fatal(err)
			}
			p[test.empty].restart(test.empty)
			alone, late := p.joins(test.lists, nil), p.joins(current, former)
			for _, c := range []*member{both, late, alone} {
				if err := p.lookAll(c); !errors.Is(err, errRests) || errors.Is(err, errIncomplete) {
					t.Errorf("%v: %v", c.sets.names, err)
				}
				if len(c.fit) != len(c.sets.names)-1 || c.fit[test.empty] {
					t.Errorf("of %v it counts %v", c.sets.names, c.fit)
				}
			}
			p[test.empty].mark.state = stateRested
			if err := p.lookAll(alone); err != nil || !alone.fit[test.empty] {
				t.Errorf("when it has rested: %v", err)
			}
		})
	}
}

// The new servers may be a set before the change begins, and a client of the former list may still have a hold.
func TestSets_AFormerServerThatComesBackEmpty_RestsAlsoWhenTheChangeIsOver(t *testing.T) {
	former, current := []string{"a", "b", "c"}, []string{"d", "e", "f"}
	p := newPool("a", "b", "c", "d", "e", "f")
	if err := errors.Join(p.lookAll(p.joins(former, nil)), p.lookAll(p.joins(current, nil))); err != nil {
		t.Fatal(err)
	}
	p["a"].restart("a")
	both := p.joins(current, former)
	if err := p.lookAll(both); !errors.Is(err, errRests) || len(both.fit) != 5 || both.fit["a"] {
		t.Errorf("%v before it has rested; it counts %v", err, both.fit)
	}
	p["a"].mark.state = stateRested
	if err := p.lookAll(both); err != nil || !both.fit["a"] {
		t.Errorf("%v when it has rested", err)
	}
}

// A change that was given up leaves its set in the marks. The next one replaces it.
func TestSets_AChangeThatIsGivenUp_IsInNobodysWay(t *testing.T) {
	p := newPool("a", "b", "c", "d", "e", "f")
	first := []string{"a", "b", "c"}
	for _, c := range []*member{
		p.joins(first, nil), p.joins([]string{"a", "b", "d"}, first), p.joins(first, nil),
		p.joins([]string{"a", "b", "c", "e", "f"}, first), p.joins([]string{"a", "b", "c", "e", "f"}, nil),
	} {
		if err := p.lookAll(c); err != nil {
			t.Fatalf("%v: %v", c.sets.names, err)
		}
	}
}

// A new server that has the mark of other servers is not overlooked because most of the others are of the former set:
// that is not what the servers are changed to.
func TestSets_AStrayMarkOnANewServer_DoesNotMakeTheFormerSetTheCurrentOne(t *testing.T) {
	former, current := []string{"a", "b", "c"}, []string{"a", "b", "d"}
	for name, begun := range map[string]bool{"before the change": false, "during the change": true} {
		t.Run(name, func(t *testing.T) {
			p := newPool("a", "b", "c", "d", "x", "y")
			if err := p.lookAll(p.joins(former, nil)); err != nil {
				t.Fatal(err)
			}
			both := p.joins(current, former)
			if begun {
				if err := p.lookAll(both); err != nil {
					t.Fatal(err)
				}
				p["d"].restart("d")
			}
			if err := p.lookAll(p.joins([]string{"d", "x", "y"}, nil)); err != nil {
				t.Fatal(err)
			}
			err := p.lookAll(both)
			const want = "d:1 is of a set of 3 servers (d:1, x:1, y:1)"
			if !isOther(err) || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v, want %q", err, want)
			}
			old, now, errBoth := both.sets.both()
			if now.same(p["a"].mark.set) || old == nil && errBoth == nil {
				t.Errorf("the former set is %+v, the current one %+v, %v", old, now, errBoth)
			}
			if want := map[bool]int{false: 0, true: 3}[begun]; len(both.fit) != want || both.fit["d"] {
				t.Errorf("it counts %v", both.fit)
			}
		})
	}
}

// A node that was away while the set was changed is told by its mark, and a client of the former set by the nodes'.
func TestSets_ANodeThatWasAwayDuringTheChange_TakesPart(t *testing.T) {
	p := newPool("a", "b", "c", "d")
	old, both := []string{"a", "b", "c"}, []string{"a", "b", "d"}
	if err := errors.Join(p.lookAll(p.joins(old, nil)), p.lookAll(p.joins(both, old))); err != nil {
		t.Fatal(err)
	}
	p["b"].mark.next = nil // as if it had not heard of it
	current := p.joins(both, nil)
	if err := p.lookAll(current); err != nil || len(current.fit) != 3 {
		t.Errorf("%v; it counts %v", err, current.fit)
	}
	if late := p.joins(old, nil); !isOther(p.lookAll(late)) || len(late.fit) > 1 {
		t.Errorf("a client of the former set counts %v", late.fit)
	}
}
