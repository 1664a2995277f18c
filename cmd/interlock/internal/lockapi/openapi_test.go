package lockapi

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"mime"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// description is openapi.json. Every test checks each answer against it.
type description struct {
	doc map[string]any

	mu   sync.Mutex
	seen map[string]bool // "METHOD /path status" that some answer had
}

func readDescription(t *testing.T) *description {
	t.Helper()
	d := &description{seen: map[string]bool{}}
	if err := json.Unmarshal(openAPI, &d.doc); err != nil {
		t.Fatal(err)
	}
	return d
}

// at follows keys, and references on the way.
func (d *description) at(v any, keys ...string) any {
	for _, key := range append(keys, "") {
		m, _ := v.(map[string]any)
		if to, ok := m["$ref"].(string); ok {
			v = d.at(d.doc, strings.Split(strings.TrimPrefix(to, "#/"), "/")...)
			m, _ = v.(map[string]any)
		}
		if key != "" {
			v = m[key]
		}
	}
	return v
}

// operations has "METHOD /path" of all that is described.
func (d *description) operations() map[string]any {
	all := map[string]any{}
	for path, item := range d.doc["paths"].(map[string]any) {
		for method, operation := range item.(map[string]any) {
			if method != "parameters" {
				all[strings.ToUpper(method)+" "+path] = operation
			}
		}
	}
	return all
}

// operationOf finds the operation that a request is.
func (d *description) operationOf(method, path string) string {
	path, _, _ = strings.Cut(path, "?")
	for operation := range d.operations() {
		m, p, _ := strings.Cut(operation, " ")
		pattern := "^" + regexp.MustCompile(`\\\{\w+\\\}`).ReplaceAllString(regexp.QuoteMeta(p), "[^/]+") + "$"
		if m == method && regexp.MustCompile(pattern).MatchString(path) {
			return operation
		}
	}
	return ""
}

// check holds an answer against what is described.
func (d *description) check(method, path string, r *http.Response, body []byte) error {
	operation := d.operationOf(method, path)
	status := strconv.Itoa(r.StatusCode)
	if operation == "" { // no such path, or no such method: a problem all the same
		return d.checkJSON(d.at(d.doc, "components", "schemas", "Problem"), body)
	}
	d.mu.Lock()
	d.seen[operation+" "+status] = true
	d.mu.Unlock()
	response := d.at(d.operations()[operation], "responses", status)
	if response == nil {
		return fmt.Errorf("%s: %s is not described: %s", operation, status, body)
	}
	headers, _ := d.at(response, "headers").(map[string]any)
	for name := range headers {
		// What has ended has no stamp, and not each refusal is worth repeating.
		if r.Header.Get(name) == "" && name != "Interlock-Stamp" && name != "Retry-After" {
			return fmt.Errorf("%s: %s lacks the header %s", operation, status, name)
		}
	}
	content, _ := d.at(response, "content").(map[string]any)
	kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	switch {
	case content == nil && len(body) == 0:
		return nil
	case content[kind] == nil:
		return fmt.Errorf("%s: %s has content %q, which is not described", operation, status, kind)
	case kind == "text/event-stream":
		return nil // each event is checked by itself
	}
	return d.checkJSON(d.at(content[kind], "schema"), body)
}

func (d *description) checkJSON(schema any, body []byte) error {
	var v any
	if err := json.Unmarshal(body, &v); err != nil {
		return fmt.Errorf("%w: %s", err, body)
	}
	if err := d.conforms(schema, v); err != nil {
		return fmt.Errorf("%w: %s", err, body)
	}
	return nil
}

// conforms checks a value by the words of JSON Schema that openapi.json uses, and knows no others.
func (d *description) conforms(schema, v any) error {
	for word, says := range d.at(schema).(map[string]any) {
		var err error
		switch word {
		case "description", "default":
		case "type":
			err = isOf(says.(string), v)
		case "enum":
			if !slices.Contains(says.([]any), v) {
				err = fmt.Errorf("%v is none of %v", v, says)
			}
		case "pattern":
			if s, ok := v.(string); ok && !regexp.MustCompile(says.(string)).MatchString(s) {
				err = fmt.Errorf("%q is not %s", s, says)
			}
		case "format":
			if _, parsed := time.Parse(time.RFC3339, fmt.Sprint(v)); says == "date-time" && parsed != nil {
				err = parsed
			}
		case "minimum":
			if n, ok := v.(float64); ok && n < says.(float64) {
				err = fmt.Errorf("%v is below %v", n, says)
			}
		case "items":
			for _, item := range v.([]any) {
				err = d.conforms(says, item)
			}
		case "required", "properties", "additionalProperties":
			err = d.fields(schema, v)
		default:
			err = fmt.Errorf("this test does not know %q", word)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func isOf(kind string, v any) error {
	ok := false
	switch v := v.(type) {
	case string:
		ok = kind == "string"
	case bool:
		ok = kind == "boolean"
	case float64:
		ok = kind == "number" || kind == "integer" && v == math.Trunc(v)
	case []any:
		ok = kind == "array"
	case map[string]any:
		ok = kind == "object"
	}
	if !ok {
		return fmt.Errorf("%v is no %s", v, kind)
	}
	return nil
}

// fields checks the fields of an object.
func (d *description) fields(schema, v any) error {
	object, ok := v.(map[string]any)
	if !ok {
		return fmt.Errorf("%v is no object", v)
	}
	required, _ := d.at(schema, "required").([]any)
	for _, name := range required {
		if _, there := object[name.(string)]; !there {
			return fmt.Errorf("%v is missing", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(object)) {
		property := d.at(schema, "properties", name)
		if property == nil {
			return fmt.Errorf("%s is not described", name)
		}
		if err := d.conforms(property, object[name]); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

func TestDescription_HasEveryRoute_AndNoOther(t *testing.T) {
	var served []string
	for _, r := range (&Server{}).routes() {
		served = append(served, r.method+" "+r.path)
	}
	served = append(served, "GET "+descriptionPath)
	slices.Sort(served)
	if described := slices.Sorted(maps.Keys(readDescription(t).operations())); !slices.Equal(served, described) {
		t.Errorf("served:    %v\ndescribed: %v", served, described)
	}
}

func TestDescription_HasEveryTypeOfProblem(t *testing.T) {
	d := readDescription(t)
	var described []string
	for _, kind := range d.at(d.doc, "components", "schemas", "Problem", "properties", "type", "enum").([]any) {
		described = append(described, strings.TrimPrefix(kind.(string), docs))
	}
	slices.Sort(described)
	if known := slices.Sorted(maps.Keys(titles)); !slices.Equal(described, known) {
		t.Errorf("described %v, known %v", described, known)
	}
}

// A checker that accepts everything would show nothing.
func TestDescription_RefusesWhatDoesNotMatch(t *testing.T) {
	d := readDescription(t)
	lease := d.at(d.doc, "components", "schemas", "Lease")
	const right = `{"id":"a","name":"n","state":"held","token":"1",` +
		`"deadline":"2026-01-02T03:04:05.000Z","remaining":1,"wanted":false}`
	if err := d.checkJSON(lease, []byte(right)); err != nil {
		t.Error(err)
	}
	for from, to := range map[string]string{
		`"id":"a",`: ``, `"held"`: `"open"`, `"1"`: `1`, `"2026-01-02T`: `"2026-01-02 `, `:1,`: `:-1,`, `false`: `0`,
		`{`: `{"more":1,`,
	} {
		if wrong := strings.Replace(right, from, to, 1); d.checkJSON(lease, []byte(wrong)) == nil {
			t.Errorf("accepted: %s", wrong)
		}
	}
}

// The type of each problem is an address: the page has to have what it points at.
func TestProblems_AreExplained(t *testing.T) {
	page, err := os.ReadFile("../../../../docs/serve.md")
	if err != nil {
		t.Fatal(err)
	}
	for kind := range titles {
		if !strings.Contains(string(page), `<a id="`+kind+`"></a>`) {
			t.Errorf("docs/serve.md does not explain %s", kind)
		}
	}
}
