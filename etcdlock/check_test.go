package etcdlock

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/servers"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// finds fails unless the findings have one of that check and level that says the text.
func finds(t *testing.T, findings []driver.Finding, check string, level driver.Level, says string) {
	t.Helper()
	for _, f := range findings {
		if f.Check == check {
			if f.Level != level || !strings.Contains(f.Detail, says) || level != driver.LevelOK && f.Advice == "" {
				t.Errorf("%s is %+v, want %s and %q", check, f, level, says)
			}
			return
		}
	}
	t.Errorf("there is no finding %q in %+v", check, findings)
}

func TestDiagnose_OfAServer(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	d := s.opens(s.node.Addr()+",127.0.0.1:1", time.Minute)
	findings := d.Diagnose(s.ctx())
	for range 2 { // an endpoint has a second and a half to answer, in which the machine may stand still
		if slices.ContainsFunc(findings, func(f driver.Finding) bool {
			return f.Check == "servers" &&
				f.Level == driver.LevelFail
		}) {
			t.Logf("once more: %+v", findings)
			findings = d.Diagnose(s.ctx())
		}
	}
	finds(t, findings, "servers", driver.LevelWarn, "1 of 2 endpoints do not answer: 127.0.0.1:1")
	finds(t, findings, "version", driver.LevelOK, "3.")
	finds(t, findings, "leader", driver.LevelOK, "one leader")
	finds(t, findings, "alarms", driver.LevelOK, "no alarm")
	finds(t, findings, "rights", driver.LevelOK, "interlock/")
	finds(t, findings, "members", driver.LevelWarn, "there is one member")
	finds(t, findings, "session", driver.LevelOK, "1m0s")
	finds(t, findings, "space", driver.LevelOK, "of 2048 MiB")
	finds(t, findings, "history", driver.LevelOK, "too few")
	if last := findings[len(findings)-1]; last.Level != driver.LevelOK {
		t.Errorf("the last finding is %+v, want the worst first", last)
	}
	s.node.Kill()
	finds(t, d.Diagnose(s.ctx()), "servers", driver.LevelFail, "no endpoint answers")
	_ = d.Close()
	finds(t, d.Diagnose(s.ctx()), "servers", driver.LevelFail, "closed")
}

func TestDiagnose_Rules(t *testing.T) {
	t.Parallel()
	for _, f := range sound().judge() {
		if f.Level != driver.LevelOK {
			t.Errorf("of a sound cluster: %+v", f)
		}
	}
	for _, row := range []struct {
		check string
		level driver.Level
		says  string
		spoil func(f *facts)
	}{
		{"version", driver.LevelFail, "3.3.1, 3.6.1", func(f *facts) { f.endpoints[1].status.Version = "3.3.1" }},
		{"version", driver.LevelWarn, "15247", func(f *facts) { f.endpoints[1].status.Version = "3.4.30" }},
		{"version", driver.LevelWarn, "3.5.12", func(f *facts) { f.endpoints[1].status.Version = "3.5.12" }},
		{"version", driver.LevelOK, "3.5.13", func(f *facts) { f.endpoints[1].status.Version = "3.5.13" }},
		{"version", driver.LevelOK, "3.4.31", func(f *facts) { f.endpoints[1].status.Version = "3.4.31" }},
		{"leader", driver.LevelFail, "no leader", func(f *facts) { f.endpoints[1].status.Leader = 0 }},
		{"leader", driver.LevelWarn, "2 leaders", func(f *facts) { f.endpoints[1].status.Leader = 8 }},
		{"alarms", driver.LevelFail, "full", func(f *facts) {
			f.alarms.Alarms = []*pb.AlarmMember{{Alarm: pb.AlarmType_NOSPACE}}
		}},
		{"alarms", driver.LevelFail, "CORRUPT", func(f *facts) {
			f.alarms.Alarms = []*pb.AlarmMember{{Alarm: pb.AlarmType_CORRUPT}}
		}},
		{"space", driver.LevelWarn, "80 of 100 MiB", func(f *facts) { f.endpoints[1].status.DbSize = 80 << 20 }},
		{"space", driver.LevelWarn, "1700 of 2048 MiB", func(f *facts) {
			f.endpoints[2].status.DbSize, f.endpoints[2].status.DbSizeQuota = 1700<<20, 0
		}},
		{"space", driver.LevelWarn, "7500 of 8192 MiB", func(f *facts) { // their product is beyond 2^63
			f.endpoints[0].status.DbSize, f.endpoints[0].status.DbSizeQuota = 900<<20, 8<<30
			f.endpoints[1].status.DbSize, f.endpoints[1].status.DbSizeQuota = 7500<<20, 8<<30
		}},
		{"history", driver.LevelWarn, "none of the 10000", func(f *facts) { f.revision = 10_000 }},
		{"history", driver.LevelOK, "is compacted", func(f *facts) { f.revision, f.compacted = 0, true }},
		{"servers", driver.LevelWarn, "a learner serves no locks: a", func(f *facts) {
			f.endpoints[0].status.IsLearner = true
		}},
		{"permissions", driver.LevelWarn, "not checked: members, alarms", func(f *facts) {
			f.hidden = []string{"members", "alarms"}
		}},
		{"rights", driver.LevelFail, "permission denied", func(f *facts) {
			f.readErr = errors.New("etcdserver: permission denied")
		}},
		{"members", driver.LevelWarn, "2 members", func(f *facts) { f.members.Members = f.members.Members[1:] }},
		{"members", driver.LevelWarn, "knows 2", func(f *facts) { f.endpoints = f.endpoints[1:] }},
		{"session", driver.LevelWarn, "1m0s of a session of 30s", func(f *facts) { f.granted = time.Minute }},
		{"latency", driver.LevelWarn, "much of a session", func(f *facts) {
			f.trips = []time.Duration{2 * time.Second}
		}},
		{"servers", driver.LevelFail, "no endpoint", func(f *facts) {
			for _, e := range f.endpoints {
				e.status, e.err = nil, errors.New("refused")
			}
		}},
	} {
		f := sound()
		row.spoil(f)
		finds(t, f.judge(), row.check, row.level, row.says)
	}
}

// sound is what a cluster without any fault says.
func sound() *facts {
	members := &clientv3.MemberListResponse{Members: []*pb.Member{{}, {}, {}}}
	status := func() *endpointFacts {
		return &endpointFacts{addr: "a", status: &clientv3.StatusResponse{
			Version: "3.6.1", Leader: 7, DbSize: 79 << 20, DbSizeQuota: 100 << 20,
		}}
	}
	return &facts{
		endpoints: []*endpointFacts{status(), status(), status()}, members: members,
		alarms: new(clientv3.AlarmResponse), revision: 9_999,
		trips: []time.Duration{time.Millisecond}, asked: 30 * time.Second, granted: 30 * time.Second, prefix: "p/",
	}
}

// From etcd 3.6 on an ordinary user is not told the state of a server. To refuse that is an answer.
func TestDiagnose_OfServersThatHideTheirState_SaysThatTheyAnswer(t *testing.T) {
	f := sound()
	for _, e := range f.endpoints {
		e.status, e.err = nil, rpctypes.ErrPermissionDenied
	}
	findings := f.judge()
	finds(t, findings, "servers", driver.LevelOK, "all 3 endpoints answer")
	finds(t, findings, "permissions", driver.LevelWarn, "version, leader, space")
	for _, f := range findings {
		if f.Level == driver.LevelFail {
			t.Errorf("a user without the role root is told: %+v", f)
		}
	}
}

func TestDiagnose_OfAHistoryThatNobodyCompacts(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	d := s.opens(s.node.Addr(), time.Minute)
	var all sync.WaitGroup
	for range 100 { // at once: the server puts what comes together into one write of its disk
		all.Go(func() {
			for range longHistory / 100 {
				if _, err := d.client.Put(s.ctx(), "another", ""); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	finds(t, d.Diagnose(s.ctx()), "history", driver.LevelWarn, "ever compacted")
	if _, err := d.client.Compact(s.ctx(), longHistory/2); err != nil {
		t.Fatal(err)
	}
	finds(t, d.Diagnose(s.ctx()), "history", driver.LevelOK, "is compacted")
}

func TestDiagnose_WithoutRights_SaysWhatIsMissing(t *testing.T) {
	t.Parallel()
	s := &stage{t: t, node: servers.EtcdServer(t, &servers.EtcdOptions{Password: "s3cret"})}
	for path, body := range map[string]map[string]any{
		"auth/user/add": {"name": "app", "password": "pw"}, "auth/role/add": {"name": "app"},
	} {
		if _, err := s.node.Do(s.ctx(), path, body); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.node.Do(s.ctx(), "auth/user/grant", map[string]any{"user": "app", "role": "app"}); err != nil {
		t.Fatal(err)
	}
	_, err := driver.DefaultMux.Open(s.ctx(), "etcd://app:pw@"+s.node.Addr(), driver.Config{})
	if err == nil || !strings.Contains(err.Error(), "read and write the keys that begin with the prefix") {
		t.Errorf("without rights: %v", err)
	}
	grant := map[string]any{"name": "app", "perm": map[string]any{
		"permType": "READWRITE", "key": "aW50ZXJsb2NrLw==", "range_end": "aW50ZXJsb2NrMA==", // interlock/ to interlock0
	}}
	if _, err := s.node.Do(s.ctx(), "auth/role/grant", grant); err != nil {
		t.Fatal(err)
	}
	d := s.openAs("app:pw")
	held := s.ask("lock")
	s.take(held, d)
	w := s.waits(d, s.ask("lock"))
	if err := s.release(d, held); err != nil {
		t.Error(err)
	}
	s.ends(w, rulesPatience)
	if w.err != nil {
		t.Error(w.err)
	}
	findings := d.Diagnose(s.ctx())
	finds(t, findings, "rights", driver.LevelOK, "interlock/")
	finds(t, findings, "servers", driver.LevelOK, "all 1 endpoints answer")
}
