package breaking

import (
	"bytes"
	"embed"
	"html/template"
	"net/http"
	"time"

	"github.com/interlock-go/interlock/lab/internal/report"
	"github.com/interlock-go/interlock/lab/internal/search"
	"github.com/interlock-go/interlock/lab/internal/story"
)

//go:embed break.html break.js break.css
var files embed.FS

var page = template.Must(template.New("break.html").Funcs(template.FuncMap{
	"both": report.Both, "t": func(en, zh string) template.HTML { return report.Both(story.Text{EN: en, ZH: zh}) },
}).ParseFS(files, "break.html"))

// fault is one that the page offers.
type fault struct {
	Action search.Action `json:"action"`
	Sign   string        `json:"sign"`
	Name   story.Text    `json:"name"`
}

// faults are all of them.
var faults = []fault{
	{search.Dies, "✖", search.Dies.Name()},
	{search.Stops, "❚❚", search.Stops.Name()},
	{search.Passes, "⊘", search.Passes.Name()},
	{search.Loses, "✂", search.Loses.Name()},
	{search.Cuts, "⌁", search.Cuts.Name()},
	{search.Jumps, "◷", search.Jumps.Name()},
}

// index is the page itself.
func (s *Server) index(w http.ResponseWriter, r *http.Request) {
	all, err := courses(r.Context())
	var b bytes.Buffer
	if err == nil {
		err = page.Execute(&b, struct {
			Chinese bool
			Courses []course
			Faults  []fault
			Data    any
		}{s.lang == story.ZH, all, faults, map[string]any{"courses": all, "faults": faults, "most": search.MostFaults}})
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = w.Write(b.Bytes()) // a reader that is gone does not matter
}

// file serves one of the page's files.
func file(name, kind string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		text, err := files.ReadFile(name)
		if err != nil {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", kind)
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(text))
	}
}
