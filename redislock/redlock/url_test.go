package redlock

import (
	"errors"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/servers"
	"github.com/redis/rueidis"
)

func TestOpen_WhatCannotBeMeant_IsRefused_AndSaysWhatToDo(t *testing.T) {
	for _, test := range []struct{ name, url, says string }{
		{"no server", "redlock://", "names no server"},
		{"one server", "redlock://h1", "name at least 3"},
		{"two servers", "redlock://h1,h2", "name at least 3"},
		{"a server twice", "redlock://h1,h2,h1", "h1 is named twice"},
		{"an unknown key", "redlock://h1,h2,h3?nodes=5", `unknown query key "nodes"`},
		{"a key of one server", "redlock://h1,h2,h3?replicas=1", `unknown query key "replicas"`},
		{"too few former servers", "redlock://h1,h2,h3?former=h4", "name at least 3"},
		{"former servers that are the current ones", "redlock://h1,h2,h3?former=h3,h1,h2", "same as the current ones"},
		{"a former server twice", "redlock://h1,h2,h3?former=h4,h5,h4", "h4 is named twice"},
		{"a length without a unit", "redlock://h1,h2,h3?longest-lease=30", "positive duration"},
		{"a key twice", "redlock://h1,h2,h3?prefix=a&prefix=b", "given 2 times"},
		{"a prefix with braces", "redlock://h1,h2,h3?prefix={a}", "braces"},
		{"a port that is none", "redlock://h1:x,h2,h3", "not a number"},
		{"a slash in the password", "redlock://u:se/same@h1,h2,h3", "%2F"},
		{"a question mark in the password", "redlock://u:se?same@h1,h2,h3", "%3F"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := driver.DefaultMux.Open(t.Context(), test.url, driver.Config{})
			if err == nil || !strings.Contains(err.Error(), test.says) {
				t.Fatalf("%v, want an error that says %q", err, test.says)
			}
			if strings.Contains(err.Error(), "same@") {
				t.Fatalf("a part of the password is shown: %v", err)
			}
		})
	}
}

func TestOpen_WithoutAMajority_IsUnavailable_AndNamesTheNodes(t *testing.T) {
	n := servers.RedisServer(t, &servers.RedisOptions{Password: "sesame"})
	url := "redlock://:wrong@" + n.Addr() + ",127.0.0.1:1,127.0.0.1:2"
	_, err := driver.DefaultMux.Open(t.Context(), url, driver.Config{})
	if !errors.Is(err, driver.ErrUnavailable) {
		t.Fatalf("%v, want one that matches ErrUnavailable", err)
	}
	for _, says := range []string{"0 of 3", n.Addr(), "127.0.0.1:1", "WRONGPASS"} {
		if !strings.Contains(err.Error(), says) {
			t.Errorf("the error does not say %q: %v", says, err)
		}
	}
	if strings.Contains(err.Error(), "wrong@") || strings.Contains(err.Error(), "sesame") {
		t.Errorf("the password is shown: %v", err)
	}
}

func TestOpen_WithPasswordOfAllServers_Locks(t *testing.T) {
	var addrs []string
	for range 3 {
		addrs = append(addrs, servers.RedisServer(t, &servers.RedisOptions{Password: "sesame"}).Addr())
	}
	d, err := driver.DefaultMux.Open(t.Context(),
		"redlock://default:sesame@"+strings.Join(addrs, ",")+"/0?check=none&node-timeout=5s", driver.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if _, err := d.Acquire(t.Context(), request("open")); err != nil {
		t.Fatal(err)
	}
}

// request is for a lock of that name.
func request(name string) *driver.Request {
	return &driver.Request{
		Key: driver.Key{Kind: driver.KindMutex, Name: name}, ID: name + "-1", Owner: "o", Client: "c", Weight: 1,
		Tokens: 1,
		Lease:  defaultLongestLease,
	}
}

// clientsOf returns clients of servers, which end with the test.
func clientsOf(t *testing.T, addrs []string) (clients []rueidis.Client) {
	t.Helper()
	for _, addr := range addrs {
		client, err := rueidis.NewClient(
			rueidis.ClientOption{InitAddress: []string{addr}, DisableCache: true, ForceSingleClient: true})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(client.Close)
		clients = append(clients, client)
	}
	return clients
}

func TestNew_OneServerTwice_IsRefused(t *testing.T) {
	nodes := addrs(startNodes(t, 3))
	_, err := New(clientsOf(t, append(nodes, nodes[0])), &Options{NodeTimeout: nodeTimeout})
	if !errors.Is(err, driver.ErrConflict) || !strings.Contains(err.Error(), "are one server") {
		t.Errorf("%v, want one that matches ErrConflict and says why", err)
	}
	twice := []facts{{name: "a", run: "1"}, {name: "b", run: "2"}, {name: "c", run: "1"}}
	if found := judgeNames(twice); found[0].Level != driver.LevelFail {
		t.Errorf("if its mark was deleted, doctor says %+v", found)
	}
}

func TestDiagnose_JudgesTheNodesTogether(t *testing.T) {
	nodes := startNodes(t, 4)
	d, err := New(clientsOf(t, addrs(nodes)), &Options{NodeTimeout: nodeTimeout})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if _, err := d.Acquire(t.Context(), request("new")); err != nil {
		t.Fatal(err)
	}
	levels := make(map[string]driver.Level)
	for _, f := range d.Diagnose(t.Context()) {
		if old := levels[f.Check]; old == "" || old == driver.LevelOK {
			levels[f.Check] = f.Level
		}
	}
	for check, want := range map[string]driver.Level{
		"same server": driver.LevelOK, "nodes": driver.LevelWarn, "majority": driver.LevelOK,
		"node clocks": driver.LevelOK,
		"persistence": driver.LevelWarn,
	} {
		if levels[check] != want {
			t.Errorf("%s is %q, want %q", check, levels[check], want)
		}
	}
	nodes[1].Kill()
	nodes[2].Kill()
	for _, f := range d.Diagnose(t.Context()) {
		if f.Check == "majority" && f.Level != driver.LevelFail {
			t.Errorf("with two of four nodes killed: %+v", f)
		}
	}
}

func TestNew_OptionsThatCannotBeMeant_AreRefused(t *testing.T) {
	if _, err := New(make([]rueidis.Client, 3), nil); err == nil || !strings.Contains(err.Error(), "node 1 is nil") {
		t.Errorf("nil clients: %v", err)
	}
	cluster, err := rueidis.NewClient(
		rueidis.ClientOption{InitAddress: servers.RedisCluster(t, 3, 0, nil).Addrs(), DisableCache: true})
	if err != nil {
		t.Fatal(err)
	}
	defer cluster.Close()
	if _, err := New([]rueidis.Client{cluster, cluster, cluster}, nil); err == nil ||
		!strings.Contains(err.Error(), "one server alone") {
		t.Errorf("clients of a Cluster: %v", err)
	}
	for _, o := range []Options{{Prefix: "{a}"}, {LongestLease: -1}, {NodeTimeout: -1}} {
		if _, err := o.withDefaults(); err == nil {
			t.Errorf("%+v is taken", o)
		}
	}
}

func TestAcquire_WhatIsNotSupported_IsRefused(t *testing.T) {
	d := &Driver{opts: Options{LongestLease: defaultLongestLease}}
	for name, change := range map[string]func(r *driver.Request){
		"a semaphore":   func(r *driver.Request) { r.Kind, r.Mode, r.Limit = driver.KindSemaphore, driver.Shared, 3 },
		"a limit":       func(r *driver.Request) { r.Kind, r.Mode, r.Limit = driver.KindRWMutex, driver.Shared, 3 },
		"a named owner": func(r *driver.Request) { r.Named = true },
		"a lock delay":  func(r *driver.Request) { r.LockDelay = 1 },
		"a long lease":  func(r *driver.Request) { r.Lease = 2 * defaultLongestLease },
		"a space in ID": func(r *driver.Request) { r.ID = "a b" },
	} {
		r := request("refused")
		change(r)
		if _, err := d.Acquire(t.Context(), r); !errors.Is(err, driver.ErrUnsupported) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
