package serve

import (
	"bytes"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/miplc/miplc/internal/fileio"
)

// longestToken is the maximum size of a token in bytes; it must fit into the header of a request.
const longestToken = 4096

// tokenAge is how long tokens are used before their files are read again.
const tokenAge = time.Second

// Tokens are the tokens that a server accepts, each in its own file. The files are read again while
// the server runs, so that tokens can be rotated: with a second file, both tokens are valid until
// the old one is replaced.
type Tokens struct {
	files []string

	mu     sync.Mutex
	read   time.Time // the last attempt
	valid  []string
	failed string // the last error that was logged
}

// ReadTokens reads the token files.
func ReadTokens(files []string) (*Tokens, error) {
	t := &Tokens{files: files}
	if err := t.load(); err != nil {
		return nil, err
	}
	return t, nil
}

func (t *Tokens) load() error {
	t.read = time.Now()
	var valid []string
	for _, file := range t.files {
		token, err := readToken(file)
		if err != nil {
			return err
		}
		valid = append(valid, token)
	}
	t.valid = valid
	return nil
}

// current returns the valid tokens. If a file cannot be read, the old tokens stay valid and the
// error is logged once.
func (t *Tokens) current(log *slog.Logger) []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if time.Since(t.read) < tokenAge {
		return t.valid
	}
	switch err := t.load(); {
	case err == nil:
		t.failed = ""
	case err.Error() != t.failed:
		t.failed = err.Error()
		log.Error("the token files cannot be read; the previous tokens stay valid", "error", err)
	}
	return t.valid
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
			return "", fmt.Errorf("%s: the token has a line break; write one token to a file and name several files", file)
		case c <= ' ' || c > '~':
			return "", fmt.Errorf("%s: byte %d of the token is %q, which no header Authorization can have; use letters, digits and punctuation of ASCII", file, i+1, c)
		}
	}
	return token, nil
}
