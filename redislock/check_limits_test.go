package redislock

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/servers"
)

// set changes a setting of a server that runs.
func set(t *testing.T, n *servers.RedisNode, name, value string) {
	t.Helper()
	if _, err := n.Do(t.Context(), "CONFIG", "SET", name, value); err != nil {
		t.Fatal(err)
	}
}

func TestDiagnose_OfAServerThatIsNearlyFull(t *testing.T) {
	s := servers.RedisServer(t, nil)
	d := open(t, soloOption(s.Addr()), nil)
	wantFinding(t, byCheck(t, d.Diagnose(t.Context())), "memory", driver.LevelOK, "maxmemory is not set")
	set(t, s, "maxmemory", "1gb")
	wantFinding(t, byCheck(t, d.Diagnose(t.Context())), "memory", driver.LevelOK, "of 1024 MiB")
	answer, err := s.Do(t.Context(), "INFO", "memory")
	if err != nil {
		t.Fatal(err)
	}
	used, _ := number(lines(answer), "used_memory")
	set(t, s, "maxmemory", strconv.Itoa(used+used/50))
	wantFinding(t, byCheck(t, d.Diagnose(t.Context())), "memory", driver.LevelWarn, "refuses new locks")
}

// The rights that the check asks for are those of the documentation, and it sees each that is missing.
func TestDiagnose_OfAUserWithoutARight_NamesIt(t *testing.T) {
	s := servers.RedisServer(t, nil)
	rights := slices.Concat(rightsInDoc(t, "locking"), rightsInDoc(t, "for the checks"))
	var doc, asked []string
	for _, right := range rightsInDoc(t, "locking") {
		if name, is := strings.CutPrefix(right, "+"); is && name != "ping" {
			doc = append(doc, name)
		}
	}
	for _, c := range lockingCommands {
		name, _, _ := strings.Cut(c, " ")
		asked = append(asked, name)
	}
	slices.Sort(doc)
	slices.Sort(asked)
	if !slices.Equal(doc, asked) {
		t.Errorf("the check asks for %v, the documentation has %v", asked, doc)
	}
	as := func(without ...string) driver.Finding {
		kept := slices.DeleteFunc(slices.Clone(rights), func(r string) bool {
			return slices.Contains(append(without, "on", ">PASSWORD"), r)
		})
		rules := append([]string{"ACL", "SETUSER", "bob", "reset", "on", ">hunter2"}, kept...)
		if _, err := s.Do(t.Context(), rules...); err != nil {
			t.Fatal(err)
		}
		option := soloOption(s.Addr())
		option.Username, option.Password = "bob", "hunter2"
		return byCheck(t, open(t, option, nil).Diagnose(t.Context()))["rights"]
	}
	if f := as(); f.Level != driver.LevelOK {
		t.Errorf("with the rights of the documentation: %+v", f)
	}
	if f := as("+zadd", "+hgetall"); f.Level != driver.LevelFail || !strings.Contains(f.Detail, "zadd, hgetall:") ||
		!strings.Contains(f.Advice, "+zadd +hgetall on ~interlock:*") {
		t.Errorf("without two: %+v", f)
	}
	if f := as("~interlock:*"); f.Level != driver.LevelFail ||
		!strings.Contains(f.Detail, "get, mget") || strings.Contains(f.Detail, "publish") {
		t.Errorf("without keys: %+v", f)
	}
}
