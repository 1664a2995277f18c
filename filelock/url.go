package filelock

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"

	"github.com/interlock-go/interlock/driver"
)

// file:// URLs: a folder by its absolute path, and readonly=true for those who only look.

func init() {
	driver.DefaultMux.Register("file", openURL)
}

// openURL opens the folder that u names. Its errors show u's path at most, never its user part.
func openURL(ctx context.Context, u *driver.URL, c driver.Config) (driver.Driver, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	params := u.Params()
	readOnly := params.Bool("readonly", false)
	folder, err := folderOf(u, params)
	if err != nil {
		return nil, err
	}
	d, err := New(folder, &Options{Logger: c.Logger, ReadOnly: readOnly})
	if err != nil {
		return nil, err
	}
	return d, nil
}

// folderOf returns the folder that u names, or says how to write the URL.
func folderOf(u *driver.URL, params *driver.Params) (string, error) {
	if u.User != "" || u.Password != "" {
		return "", errors.New("file: the URL has a user, which a folder does not take; write file:///folder")
	}
	if len(u.Hosts) > 0 {
		// file://locks/x would read as the folder /x on the host "locks": most likely two slashes were written for
		// three.
		return "", fmt.Errorf("file: the URL names the host %q; write three slashes and an absolute path, as in "+
			"file:///var/lib/app/locks", u.Hosts[0])
	}
	if err := params.Err(); err != nil {
		return "", err
	}
	if u.Path == "" || u.Path == "/" {
		return "", errors.New("file: the URL names no folder; write an absolute path, as in file:///var/lib/app/locks")
	}
	if runtime.GOOS == "windows" { // file:///C:/locks
		return strings.TrimPrefix(u.Path, "/"), nil
	}
	return u.Path, nil
}
