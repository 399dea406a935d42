// Certificates of the server, which are read again when their files change.

package serve

import (
	"crypto/tls"
	"fmt"
	"log/slog"

	"github.com/miplc/miplc/internal/fileio"
)

// maxPEM bounds the files of a certificate chain and of a key, in bytes.
const maxPEM = 1 << 20

// TLS returns a configuration with the certificate and key in two PEM files. Handshakes read the files
// again. While the files do not match, the last valid pair stays in use, and the error is logged once.
func TLS(certificate, key string, log *slog.Logger) (*tls.Config, error) {
	pair, err := newReloaded("the certificate cannot be read; the previous one stays in use",
		func() (*tls.Certificate, error) {
			pair, err := readPair(certificate, key)
			if err != nil {
				return nil, fmt.Errorf("the certificate %s with the key %s: %w", certificate, key, err)
			}
			return &pair, nil
		})
	if err != nil {
		return nil, err
	}
	current := func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return pair.current(log), nil }
	return &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: current}, nil
}

func readPair(certificate, key string) (pair tls.Certificate, err error) {
	chain, err := fileio.ReadAtMost(certificate, maxPEM, "a certificate")
	if err != nil {
		return pair, err
	}
	secret, err := fileio.ReadAtMost(key, maxPEM, "a key")
	if err != nil {
		return pair, err
	}
	return tls.X509KeyPair(chain, secret)
}
