package console

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"net/http"
	"path"

	"github.com/interlock-go/interlock/console/page"
)

// types are those of the page's files, so that they do not depend on what the machine knows.
var types = map[string]string{
	".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8",
	".json": "application/json", ".svg": "image/svg+xml",
}

// file is one file of the page, ready to be sent.
type file struct {
	content   []byte
	kind, tag string
}

// files are those of the page, by name.
type files map[string]file

// noLogout is what the page has where nobody logs in.
const noLogout = ` id="logout" hidden`

// newFiles reads the page once. It has a button to log out if there is a login.
func newFiles(login bool) (files, error) {
	all := make(files)
	entries, err := fs.ReadDir(page.Files, "static")
	if err != nil {
		return nil, fmt.Errorf("console: the page: %w", err)
	}
	for _, e := range entries {
		content, err := fs.ReadFile(page.Files, "static/"+e.Name())
		if err != nil {
			return nil, fmt.Errorf("console: the page: %w", err)
		}
		if login && e.Name() == "index.html" {
			content = bytes.Replace(content, []byte(noLogout), []byte(` id="logout"`), 1)
		}
		sum := sha256.Sum256(content)
		kind := types[path.Ext(e.Name())]
		if kind == "" {
			return nil, fmt.Errorf("console: the page: %s has no type", e.Name())
		}
		all[e.Name()] = file{content, kind, `"` + hex.EncodeToString(sum[:12]) + `"`}
	}
	return all, nil
}

// index sends the page.
func (f files) index(w http.ResponseWriter, r *http.Request) { f.send(w, r, "index.html") }

// static sends a file that the page names.
func (f files) static(w http.ResponseWriter, r *http.Request) { f.send(w, r, r.PathValue("file")) }

// send sends a file, unless the browser has it already: it asks each time, because the next version may differ.
func (f files) send(w http.ResponseWriter, r *http.Request, name string) {
	one, ok := f[name]
	if !ok {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Cache-Control", "no-cache")
	w.Header().Set("ETag", one.tag)
	if r.Header.Get("If-None-Match") == one.tag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	w.Header().Set("Content-Type", one.kind)
	_, _ = w.Write(one.content) // whoever has gone needs no page
}
