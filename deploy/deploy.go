// Package deploy hands models over to servers: as a model repository of Triton, as a
// manifest of KServe, as Dockerfiles of miplc serve and of Go services.
package deploy

import (
	"bytes"
	"embed"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"text/template"

	"github.com/miplc/miplc/export/contract"
	"github.com/miplc/miplc/internal/onnxpb"
	"github.com/miplc/miplc/internal/outfile"
)

//go:embed *.tmpl
var sources embed.FS

var templates = template.Must(template.ParseFS(sources, "*.tmpl"))

// Model is what is handed over.
type Model struct {
	Name  string // as servers and clusters allow it: lower-case letters, digits and -
	path  string
	proto *onnxpb.ModelProto
	meta  *contract.Metadata
}

// Read reads a model file. An empty name stands for that of the spec.
func Read(path, name string) (*Model, error) {
	proto, meta, err := contract.Read(path)
	if err != nil {
		return nil, err
	}
	if name == "" {
		name = strings.Trim(regexp.MustCompile(`[^a-z0-9]+`).ReplaceAllString(strings.ToLower(proto.GetGraph().GetName()), "-"), "-")
	}
	if !regexp.MustCompile(`^[a-z]([a-z0-9-]{0,50}[a-z0-9])?$`).MatchString(name) {
		return nil, fmt.Errorf("%q is no name for a cluster: it takes up to 52 lower-case letters, digits and -, the first a letter, the last no -", name)
	}
	return &Model{Name: name, path: path, proto: proto, meta: meta}, nil
}

// file is one of those that belong together.
type file struct {
	name    string
	content []byte
}

// rendered fills a template.
func rendered(name, source string, values any) (file, error) {
	var out bytes.Buffer
	if err := templates.ExecuteTemplate(&out, source, values); err != nil {
		return file{}, fmt.Errorf("bug: %s: %w", source, err)
	}
	return file{name, out.Bytes()}, nil
}

// write writes files below a folder, all of them or none that would replace
// something, and gives their paths.
func write(dir string, force bool, inputs []string, files []file) ([]string, error) {
	var started []*outfile.File
	defer func() {
		for _, f := range started {
			f.Discard()
		}
	}()
	paths := make([]string, len(files))
	for i, f := range files {
		paths[i] = filepath.Join(dir, filepath.FromSlash(f.name))
		out, err := outfile.Create(paths[i], outfile.Options{Force: force, Inputs: inputs})
		if err != nil {
			return nil, err
		}
		started = append(started, out)
		if _, err := out.Write(f.content); err != nil {
			return nil, err
		}
		if err := out.Finish(); err != nil {
			return nil, err
		}
	}
	for _, out := range started {
		if err := out.Commit(); err != nil {
			return nil, err
		}
	}
	return paths, nil
}
