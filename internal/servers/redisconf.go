package servers

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

const (
	// redisConf is the name of the file in the folder of a Redis or a Sentinel. It is a file, not arguments, because
	// both write down there what they must remember, and read it when they are started again.
	redisConf = "redis.conf"

	// The user as whom the package itself talks to a Redis whose users the test has chosen.
	adminUser, adminPassword = "servers", "servers"
)

// redisSettings are directives of redis.conf with their values as they stand there; "" is an empty value.
type redisSettings map[string]string

// settings are those of a Redis at s that keeps nothing on disk.
func (o *RedisOptions) settings(s Site, certs *certificates) redisSettings {
	set := redisSettings{
		"bind": s.Host, "dir": s.Dir, "port": strconv.Itoa(s.Ports[0]), "daemonize": "no", "save": "",
		"appendonly": "no",
	}
	// others than those of this machine's loopback are refused otherwise, but only members come there
	if s.Host != host {
		set["protected-mode"] = "no"
	}
	if certs != nil {
		maps.Copy(set, certs.settings(s.Ports[0]))
	}
	if o.Password != "" {
		set["requirepass"] = strconv.Quote(o.Password)
	}
	return set
}

// write writes the file, with further lines at its end.
func (set redisSettings) write(dir string, lines ...string) error {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(set)) {
		value := set[name]
		if value == "" {
			value = `""`
		}
		b.WriteString(name + " " + value + "\n")
	}
	for _, line := range lines {
		b.WriteString(line + "\n")
	}
	return os.WriteFile(filepath.Join(dir, redisConf), []byte(b.String()), 0o600)
}
