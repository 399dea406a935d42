package serve

import (
	"crypto/tls"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/miplc/miplc/internal/fileio"
)

// TLS returns a configuration with the certificate and key in two PEM files. Handshakes read
// changed files again. While the files do not match, the last valid pair stays in use.
func TLS(certificate, key string) (*tls.Config, error) {
	p := &pair{certificate: certificate, key: key}
	if err := p.load(); err != nil {
		return nil, fmt.Errorf("the certificate %s with the key %s: %w", certificate, key, err)
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: p.get}, nil
}

// pair is a certificate and its key as last read.
type pair struct {
	certificate, key string

	mu     sync.Mutex
	read   [2]time.Time // modification times of the files
	loaded *tls.Certificate
}

func (p *pair) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.read != p.changed() {
		_ = p.load() // errors are retried at the next handshake
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

func (p *pair) load() error {
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
	p.loaded, p.read = &loaded, at
	return nil
}
