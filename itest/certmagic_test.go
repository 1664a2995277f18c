package itest

import (
	"testing"
	"time"

	"github.com/caddyserver/certmagic"
	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/adapters/certlock"
	_ "github.com/interlock-go/interlock/memlock"
)

// What CertMagic asks for by the methods alone, of which package certlock must not know.
var (
	_ certmagic.Locker           = (*certlock.Locker)(nil)
	_ certmagic.TryLocker        = (*certlock.Locker)(nil)
	_ certmagic.LockLeaseRenewer = (*certlock.Locker)(nil)
	_ certmagic.Storage          = certStorage{}
	_ certmagic.TryLocker        = certStorage{}
	_ certmagic.LockLeaseRenewer = certStorage{}
)

// certFiles and certStorage are what the documentation of package certlock says a storage is.
type certFiles struct{ certmagic.Storage }

type certStorage struct {
	certFiles
	*certlock.Locker
}

func TestCertStorage_LocksWithInterlock_AndKeepsCertificatesInFiles(t *testing.T) {
	ctx := t.Context()
	locks, err := interlock.Open(ctx, "mem://"+t.Name(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer locks.Close()
	newServer := func() certmagic.Storage {
		return certStorage{certFiles{&certmagic.FileStorage{Path: t.TempDir()}}, certlock.New(locks, "")}
	}
	here, there := newServer(), newServer()
	if err := here.Lock(ctx, "issue_cert_example.com"); err != nil {
		t.Fatal(err)
	}
	if free, err := there.(certmagic.TryLocker).TryLock(ctx, "issue_cert_example.com"); free || err != nil {
		t.Errorf("another server, whose files are elsewhere, gets the lock too: %t, %v", free, err)
	}
	if err := here.(certmagic.LockLeaseRenewer).RenewLockLease(ctx, "issue_cert_example.com", time.Minute); err != nil {
		t.Error(err)
	}
	if err := here.Store(ctx, "certificates/example.com", []byte("a certificate")); err != nil {
		t.Error(err)
	}
	if text, err := here.Load(ctx, "certificates/example.com"); string(text) != "a certificate" || err != nil {
		t.Errorf("the certificate is %q (%v)", text, err)
	}
	if err := here.Unlock(ctx, "issue_cert_example.com"); err != nil {
		t.Error(err)
	}
	if free, err := there.(certmagic.TryLocker).TryLock(ctx, "issue_cert_example.com"); !free || err != nil {
		t.Errorf("the lock is not free after Unlock: %t, %v", free, err)
	}
}
