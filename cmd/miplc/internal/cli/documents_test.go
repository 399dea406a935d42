// Every command and flag in the documents exists.

package cli

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/miplc/miplc/cmd/miplc/internal/console"
)

var commandLine = regexp.MustCompile(`(?m)^(?: {4,}|\$ )(?:go run \./cmd/)?miplc .*$`)

// TestDocumentedCommands checks that the commands and flags of every command line in a document
// exist.
func TestDocumentedCommands(t *testing.T) {
	root := filepath.Join("..", "..", "..", "..")
	var documents []string
	for _, pattern := range []string{"*.md", "docs/*.md", "bench/*.md", "examples/*/*.md"} {
		found, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			t.Fatal(err)
		}
		documents = append(documents, found...)
	}
	shown := 0
	for _, path := range documents {
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		text := regexp.MustCompile(`\\\n\s*`).ReplaceAllString(string(raw), "")
		for _, line := range commandLine.FindAllString(text, -1) {
			for _, part := range regexp.MustCompile(`&&|\|\||[;|>#]`).Split(line, -1) {
				_, args, found := strings.Cut(part, "miplc ")
				if !found {
					continue
				}
				shown++
				if err := accepts(strings.Fields(args)); err != nil {
					t.Errorf("%s: %s: %v", path, strings.TrimSpace(part), err)
				}
			}
		}
	}
	if shown < 20 {
		t.Errorf("found only %d command lines in %d documents", shown, len(documents))
	}
}

// accepts returns the error for a command line with an unknown command, flag or argument.
func accepts(args []string) error {
	command, rest, err := newRoot(console.System()).Find(args)
	if err != nil {
		return err
	}
	if err := command.ParseFlags(rest); err != nil {
		return err
	}
	return command.ValidateArgs(command.Flags().Args())
}
