// The topology part of a URL: hosts, path, database and TLS. url.go reads the rest and calls it.

package redislock

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/enginekit/address"
	"github.com/redis/rueidis"
)

// The ports of servers and Sentinels that a URL does not give.
const (
	serverPort   = "6379"
	sentinelPort = "26379"
)

// topology fills in the servers' addresses, the meaning of the path, and TLS. The scheme decides about all three.
func topology(o *rueidis.ClientOption, u *driver.URL, q *query) error {
	if len(u.Hosts) == 0 {
		return fmt.Errorf("redis: the URL names no server; write for instance %s://localhost", u.Scheme)
	}
	path := strings.Trim(u.Path, "/")
	port := serverPort
	if u.Scheme != "redis+sentinel" && (q.sentinelUser != "" || q.sentinelPassword != "") {
		return errors.New("redis: sentinel-user and sentinel-password are for redis+sentinel:// only")
	}
	switch u.Scheme {
	case "redis+sentinel":
		if err := checkPrimary(path); err != nil {
			return err
		}
		o.Sentinel = rueidis.SentinelOption{MasterSet: path, Username: q.sentinelUser, Password: q.sentinelPassword}
		port, path = sentinelPort, ""
	case "redis+cluster":
		// Clients with the same URL would otherwise all ask the first node for the slots.
		o.ShuffleInit = true
		if path != "" || q.db != 0 {
			return errors.New("redis: a Cluster has no numbered databases; leave the path and db out of the URL")
		}
	default:
		if len(u.Hosts) > 1 {
			return fmt.Errorf(
				"redis: %s:// takes one server; for several write redis+sentinel://, redis+cluster:// or redlock://",
				u.Scheme)
		}
		// Without this, rueidis asks the server whether it belongs to a Cluster.
		o.ForceSingleClient = true
	}
	if err := q.setDatabase(path); err != nil {
		return err
	}
	o.SelectDB = q.db
	var err error
	if o.InitAddress, err = address.WithPorts("redis", u.Hosts, port); err != nil {
		return err
	}
	return encrypt(o, u, q)
}

// checkPrimary refuses a name that no Sentinel can have for a primary.
func checkPrimary(name string) error {
	if name == "" {
		return errors.New(
			"redis: the URL names no primary; write redis+sentinel://host1,host2,host3/NAME, as the Sentinels call it")
	}
	if strings.ContainsFunc(name, notInName) {
		return errors.New(
			"redis: the name of a primary has letters, digits, dots, dashes and underscores; a database is set by db")
	}
	return nil
}

// setDatabase takes the number of the database from the URL's path, if it has one. The key db may repeat it.
func (q *query) setDatabase(path string) error {
	if path == "" {
		return nil
	}
	db, err := strconv.Atoi(path)
	if err != nil || db < 0 {
		return errors.New("redis: the path is the number of a database, as in redis://host/0")
	}
	if q.db != 0 && q.db != db {
		return errors.New("redis: the path and db name different databases")
	}
	q.db = db
	return nil
}

// notInName reports whether Sentinel refuses r in the name of a primary.
func notInName(r rune) bool {
	letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
	return !letter && !(r >= '0' && r <= '9') && !strings.ContainsRune(".-_", r)
}

// encrypt sets up TLS if the URL asks for it.
func encrypt(o *rueidis.ClientOption, u *driver.URL, q *query) error {
	if u.Scheme == "rediss" && u.Query.Has("tls") && !q.tls {
		return errors.New("redis: rediss:// and tls=false contradict each other")
	}
	c, err := q.files.Config("redis", u.Scheme == "rediss" || q.tls, "rediss:// or tls=true")
	if err != nil {
		return err
	}
	o.TLSConfig = c
	// The Sentinels are reached in the same way as the servers behind them.
	if u.Scheme == "redis+sentinel" {
		o.Sentinel.TLSConfig = c
	}
	return nil
}
