package target

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/interlock-go/interlock/internal/servers"
)

// version asks a server which one it is.
type version func(ctx context.Context) (string, error)

// Version is the product and the version of the servers, empty if there are none.
func (i *Instance) Version(ctx context.Context) (string, error) {
	if i.version == nil {
		return "", nil
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	text, err := i.version(ctx)
	if err != nil {
		return "", fmt.Errorf("which version the server is: %w", err)
	}
	return text, nil
}

func redisVersion(n *servers.RedisNode) version {
	return func(ctx context.Context) (string, error) {
		info, err := n.Info(ctx, "server")
		return "Redis " + info["redis_version"], err
	}
}

func etcdVersion(n *servers.EtcdNode) version {
	return func(ctx context.Context) (string, error) {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+n.Addr()+"/version", nil)
		if err != nil {
			return "", err
		}
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			return "", err
		}
		defer func() { _ = answer.Body.Close() }()
		var v struct {
			Server string `json:"etcdserver"`
		}
		err = json.NewDecoder(answer.Body).Decode(&v)
		return "etcd " + v.Server, err
	}
}

func zooKeeperVersion(n *servers.ZooKeeperNode) version {
	return func(ctx context.Context) (string, error) {
		text, err := n.Ask(ctx, "srvr")
		first, _, _ := strings.Cut(strings.TrimPrefix(text, "Zookeeper version: "), "-")
		return "ZooKeeper " + first, err
	}
}

func sqlVersion(product, driver, address, query string) version {
	return func(ctx context.Context) (string, error) {
		var v string
		err := onDatabase(driver, address, func(db *sql.DB) error { return db.QueryRowContext(ctx, query).Scan(&v) })
		v, _, _ = strings.Cut(v, " ")
		v, _, _ = strings.Cut(v, "-")
		return product + " " + v, err
	}
}
