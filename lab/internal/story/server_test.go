package story

import "testing"

func TestServer_HasItsNameInBothLanguages(t *testing.T) {
	for name, zh := range map[string]string{
		"node 2": "节点 2", "primary": "主节点", "replica, now primary": "副本（现为主节点）", "Redis": "Redis", "clock": "clock",
	} {
		if got := Server(name); got != (Text{name, zh}) {
			t.Errorf("%s is %+v", name, got)
		}
	}
}
