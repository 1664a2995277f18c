package story

import "strings"

// AllNodes is the server of a message that a client sends to several at once.
const AllNodes = "nodes"

// servers are the names of servers, and of what the picture shows of them, in Chinese. Others are the same in both
// languages: products, and keys.
var servers = map[string]string{
	"primary": "主节点", "replica": "副本", "replica, now primary": "副本（现为主节点）", AllNodes: "各节点",
	"queue": "队列", "lock": "锁", "users": "用户", "Redis: stock": "Redis 库存", "MariaDB: stock": "MariaDB 库存",
}

// Server returns the name of a server, as an act or a message has it, in both languages.
func Server(name string) Text {
	if zh, known := servers[name]; known {
		return Text{EN: name, ZH: zh}
	}
	if number, is := strings.CutPrefix(name, "node "); is {
		return Text{EN: name, ZH: "节点 " + number}
	}
	return Same(name)
}
