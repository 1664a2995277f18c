// Package overlay gives the compiler other sources than those that are there ("go build -overlay"), for tests that
// change code without changing a file of the clone.
package overlay

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
)

// Write writes texts, by the paths of the files in whose place the compiler is to take them, into dir, and returns the
// path of the list that -overlay wants.
func Write(dir string, texts map[string]string) (list string, err error) {
	replace := map[string]string{}
	for file, text := range texts {
		at := filepath.Join(dir, strconv.Itoa(len(replace))+"-"+filepath.Base(file))
		if err := os.WriteFile(at, []byte(text), 0o600); err != nil {
			return "", err
		}
		replace[file] = at
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	list = filepath.Join(dir, "overlay.json")
	return list, os.WriteFile(list, text, 0o600)
}
