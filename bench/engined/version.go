package engined

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	_ "github.com/go-sql-driver/mysql" // registers mysql
	"github.com/jackc/pgx/v5"
	goredis "github.com/redis/go-redis/v9"
)

// version asks a server which one it is.
func version(ctx context.Context, engine, addr string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	switch engine {
	case Redis, Redlock:
		addr, _, _ = strings.Cut(addr, ",")
		c := goredis.NewClient(&goredis.Options{Addr: addr})
		defer c.Close()
		info, err := c.InfoMap(ctx, "server").Result()
		return "Redis " + info["Server"]["redis_version"], err
	case ZK:
		text, err := zkSays(ctx, addr, "srvr")
		first, _, _ := strings.Cut(strings.TrimPrefix(text, "Zookeeper version: "), "-")
		return "ZooKeeper " + first, err
	case Etcd:
		return etcdVersion(ctx, addr)
	case MySQL:
		db, err := sql.Open("mysql", MySQLDSN(addr))
		if err != nil {
			return "", err
		}
		defer db.Close()
		var v string
		err = db.QueryRowContext(ctx, "SELECT VERSION()").Scan(&v)
		product, rest, found := strings.Cut(v, "-MariaDB")
		if _ = rest; found {
			return "MariaDB " + product, err
		}
		return "MySQL " + v, err
	default:
		c, err := pgx.Connect(ctx, PostgresURL(addr))
		if err != nil {
			return "", err
		}
		defer c.Close(ctx)
		var v string
		err = c.QueryRow(ctx, "SHOW server_version").Scan(&v)
		first, _, _ := strings.Cut(v, " ")
		return "PostgreSQL " + first, err
	}
}

// MySQLDSN is how go-sql-driver/mysql names the server at addr. Arguments are put into the text, which spares the round
// trip of preparing.
func MySQLDSN(addr string) string {
	return "root@tcp(" + addr + ")/" + Database + "?interpolateParams=true"
}

// PostgresURL is how pgx names the server at addr.
func PostgresURL(addr string) string {
	return "postgres://postgres@" + addr + "/postgres?sslmode=disable"
}

// zkSays sends one of ZooKeeper's words of four letters.
func zkSays(ctx context.Context, addr, word string) (string, error) {
	c, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		return "", err
	}
	defer c.Close()
	if end, ok := ctx.Deadline(); ok {
		err = c.SetDeadline(end)
	}
	_, errWrite := io.WriteString(c, word)
	text, errRead := io.ReadAll(c)
	return string(text), errors.Join(err, errWrite, errRead)
}

func etcdVersion(ctx context.Context, addr string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr+"/version", nil)
	if err != nil {
		return "", err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	var v struct {
		Server string `json:"etcdserver"`
	}
	err = json.NewDecoder(response.Body).Decode(&v)
	return "etcd " + v.Server, err
}
