package serve

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/miplc/miplc/internal/fileio"
)

// TLS returns a configuration with the certificate and key in two PEM files. Handshakes read
// changed files again. While the files do not match, the last valid pair stays in use, and the error is
// logged once.
func TLS(certificate, key string, log *slog.Logger) (*tls.Config, error) {
	p := &pair{certificate: certificate, key: key, log: log}
	if err := p.load(); err != nil {
		return nil, err
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: p.get}, nil
}

// pair is a certificate and its key as last read.
type pair struct {
	certificate, key string
	log              *slog.Logger

	mu     sync.Mutex
	read   [2]time.Time // modification times of the files
	loaded *tls.Certificate
	failed string // the last error that was logged
}

func (p *pair) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.read != p.changed() {
		if err := p.load(); err != nil && err.Error() != p.failed { // the next handshake tries again
			p.failed = err.Error()
			p.log.Error("the certificate cannot be read; the previous one stays in use", "error", err)
		}
	}
	return p.loaded, nil
}

func (p *pair) changed() (at [2]time.Time) {
	for i, path := range []string{p.certificate, p.key} {
		if info, err := os.Stat(path); err == nil {
			at[i] = info.ModTime()
		}
	}
	return at
}

// maxPEM bounds the files of a certificate chain and of a key, in bytes.
const maxPEM = 1 << 20

func (p *pair) load() (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("the certificate %s with the key %s: %w", p.certificate, p.key, err)
		}
	}()
	at := p.changed()
	certificate, err := fileio.ReadAtMost(p.certificate, maxPEM, "a certificate")
	if err != nil {
		return err
	}
	key, err := fileio.ReadAtMost(p.key, maxPEM, "a key")
	if err != nil {
		return err
	}
	loaded, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return err
	}
	p.loaded, p.read, p.failed = &loaded, at, ""
	return nil
}
