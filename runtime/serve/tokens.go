// Tokens of clients and certificates of the server, which are read again when their files change.

package serve

import (
	"bytes"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/miplc/miplc/internal/fileio"
)

// longestToken is the maximum size of a token in bytes; it must fit into the header of a request.
const longestToken = 4096

// Tokens are the tokens that a server accepts, each in its own file. The files are read again while
// the server runs, so that tokens can be rotated: with a second file, both tokens are valid until
// the old one is replaced.
type Tokens struct{ *reloaded[[]string] }

// ReadTokens reads the token files.
func ReadTokens(files []string) (*Tokens, error) {
	tokens, err := newReloaded("the token files cannot be read; the previous tokens stay valid",
		func() (valid []string, err error) {
			for _, file := range files {
				token, err := readToken(file)
				if err != nil {
					return nil, err
				}
				valid = append(valid, token)
			}
			return valid, nil
		})
	return &Tokens{tokens}, err
}

// reloadAge is how long a value is used before its files are read again.
const reloadAge = time.Second

// reloaded is a value from files, which are read again while the server runs.
type reloaded[T any] struct {
	load    func() (T, error)
	problem string // what is logged if they cannot be read

	mu     sync.Mutex
	read   time.Time // the last attempt
	value  T
	failed string // the last error that was logged
}

func newReloaded[T any](problem string, load func() (T, error)) (*reloaded[T], error) {
	value, err := load()
	return &reloaded[T]{load: load, problem: problem, read: time.Now(), value: value}, err
}

// current returns the value. If the files cannot be read, the old value stays in use and the error is
// logged once.
func (r *reloaded[T]) current(log *slog.Logger) T {
	r.mu.Lock()
	defer r.mu.Unlock()
	if time.Since(r.read) < reloadAge {
		return r.value
	}
	r.read = time.Now()
	switch value, err := r.load(); {
	case err == nil:
		r.value, r.failed = value, ""
	case err.Error() != r.failed:
		r.failed = err.Error()
		log.Error(r.problem, "error", err)
	}
	return r.value
}

// readToken reads a file with one token. It ignores spaces and line breaks around the token. All
// other characters must be visible ASCII, because headers cannot contain others.
func readToken(file string) (string, error) {
	text, err := fileio.ReadAtMost(file, longestToken, "a token")
	if err != nil {
		return "", err
	}
	token := string(bytes.Trim(text, " \t\r\n"))
	if token == "" {
		return "", fmt.Errorf("%s: there is no token in it", file)
	}
	for i := range len(token) {
		switch c := token[i]; {
		case c == '\n' || c == '\r':
			return "", fmt.Errorf("%s: the token has a line break; write one token to a file and name several files",
				file)
		case c <= ' ' || c > '~':
			return "", fmt.Errorf("%s: byte %d of the token is %q, which no header Authorization can have; "+
				"use letters, digits and punctuation of ASCII", file, i+1, c)
		}
	}
	return token, nil
}

// allowed checks the bearer token in the header Authorization, in constant time.
func (s *Server) allowed(authorization string) error {
	if s.o.Tokens == nil {
		return nil
	}
	scheme, token, _ := strings.Cut(authorization, " ")
	given, same := sha256.Sum256([]byte(token)), 0
	for _, valid := range s.o.Tokens.current(s.o.Log) {
		want := sha256.Sum256([]byte(valid))
		same |= subtle.ConstantTimeCompare(given[:], want[:])
	}
	if !strings.EqualFold(scheme, "Bearer") || same != 1 {
		return status.Error(codes.Unauthenticated,
			"the header Authorization must be Bearer with a token of this server")
	}
	return nil
}

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
