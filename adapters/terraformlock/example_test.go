package terraformlock_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/adapters/terraformlock"
	_ "github.com/interlock-go/interlock/filelock" // answers to file:// URLs
	_ "github.com/interlock-go/interlock/memlock"  // answers to mem:// URLs
	"github.com/interlock-go/interlock/webguard"
)

// A server for the states of Terraform. One run has locked a state, and a second one is refused.
func ExampleNew() {
	ctx := context.Background()
	folder, err := os.MkdirTemp("", "states") // in a program: a folder that stays
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(folder)
	locks, err := interlock.Open(ctx, "mem://states", nil) // in a program: an engine that all servers share
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()
	files, err := interlock.Open(ctx, "file://"+folder+"/.gates", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer files.Close()

	states, err := terraformlock.New(locks, files, folder, &terraformlock.Options{
		Tokens: []webguard.Token{{Name: "ci", Secret: "correct horse battery staple"}}, // in a program: ReadTokens
	})
	if err != nil {
		log.Fatal(err)
	}
	defer states.Close(ctx)
	mux := http.NewServeMux()
	mux.Handle("/state/", http.StripPrefix("/state/", states))

	lock := func(run string) {
		body := strings.NewReader(`{"ID":"` + run + `"}`)
		r := httptest.NewRequestWithContext(ctx, terraformlock.MethodLock, "/state/network", body)
		r.SetBasicAuth("ci", "correct horse battery staple") // TF_HTTP_USERNAME and TF_HTTP_PASSWORD
		answer := httptest.NewRecorder()
		mux.ServeHTTP(answer, r)
		fmt.Println(run, answer.Code)
	}
	lock("first")
	lock("second")
	// Output:
	// first 200
	// second 423
}
