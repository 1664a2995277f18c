package main

import (
	"path"
	"slices"
	"strings"
)

// checkPictures reports drawings that a document shows and that are the same on a light page and on a dark one: one of
// the two is hard to see.
func checkPictures(docs map[string]*doc, files *tree) (found []problem) {
	for _, name := range files.paths() {
		text := files.texts[name]
		if path.Ext(name) == ".svg" && !strings.Contains(text, "prefers-color-scheme") && shown(docs, name) {
			found = append(found, problem{name, 1, "no colours for dark pages: draw it with internal/svg"})
		}
	}
	return found
}

// shown reports whether a document shows a picture.
func shown(docs map[string]*doc, name string) bool {
	for _, d := range docs {
		if slices.ContainsFunc(d.links, func(l link) bool { to, _ := d.place(l.target); return to == name }) {
			return true
		}
	}
	return false
}
