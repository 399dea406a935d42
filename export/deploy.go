// The files with which servers run models: a model repository for Triton, and Dockerfiles for miplc serve and
// for Go services.

package export

import (
	"bytes"
	"embed"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"text/template"

	"github.com/miplc/miplc/internal/contract"
	"github.com/miplc/miplc/internal/fileio"
	"github.com/miplc/miplc/internal/libraries"
	"github.com/miplc/miplc/internal/onnxpb"
	"github.com/miplc/miplc/internal/onnxruntime"
)

//go:embed *.tmpl
var sources embed.FS

var templates = template.Must(template.ParseFS(sources, "*.tmpl"))

// Deployment is a model to deploy.
type Deployment struct {
	Name  string             // valid in servers and clusters: lower-case letters, digits and -
	Meta  *contract.Metadata // must not be changed
	path  string
	proto *onnxpb.ModelProto
}

// DeployRead reads a model file. If name is empty, the model has the name of the spec.
func DeployRead(path, name string) (*Deployment, error) {
	proto, meta, err := contract.Read(path)
	if err != nil {
		return nil, err
	}
	if name == "" {
		name = strings.Trim(regexp.MustCompile(`[^a-z0-9]+`).ReplaceAllString(strings.ToLower(proto.GetGraph().GetName()),
			"-"), "-")
	}
	if !regexp.MustCompile(`^[a-z]([a-z0-9-]{0,50}[a-z0-9])?$`).MatchString(name) {
		return nil, fmt.Errorf("%q is not a valid name in a cluster: use up to 52 lower-case letters, digits and -, "+
			"starting with a letter and not ending with -", name)
	}
	return &Deployment{Name: name, path: path, proto: proto, Meta: meta}, nil
}

// File is a file of a deployment.
type File struct {
	Path    string
	Content []byte
}

// rendered executes a template.
func rendered(path, source string, values any) (File, error) {
	var out bytes.Buffer
	if err := templates.ExecuteTemplate(&out, source, values); err != nil {
		return File{}, fmt.Errorf("bug: %s: %w", source, err)
	}
	return File{Path: path, Content: out.Bytes()}, nil
}

// DockerSource says where the image of miplc serve gets its program and onnxruntime.
type DockerSource struct {
	Version string // release or commit of miplc to install; the image downloads onnxruntime
	// Program and Library are files to copy into the image. If they are set, Version is not used.
	Program, Library string
}

// Docker returns the files from which Docker builds two images: Dockerfile, which runs miplc serve
// with the model, service.Dockerfile, for a Go service that uses package runtime, and the model.
func (m *Deployment) Docker(dir string, from DockerSource) ([]File, error) {
	var files []File
	for _, copied := range []struct{ path, to string }{
		{m.path, filepath.Join("models", m.Name, "1", "model.onnx")}, {from.Program, "miplc"},
		{from.Library, "libonnxruntime.so"}} {
		if copied.path == "" {
			continue
		}
		content, err := fileio.Read(copied.path)
		if err != nil {
			return nil, err
		}
		files = append(files, File{Path: filepath.Join(dir, copied.to), Content: content})
	}
	pins := slices.DeleteFunc(slices.Clone(onnxruntime.Pins()), func(p libraries.Pin) bool {
		return !strings.HasPrefix(p.System, "linux/") || p.Via != libraries.ViaPip
	})
	values := map[string]any{"Name": m.Name, "Version": from.Version, "Local": from.Program != "", "Libraries": pins}
	for _, name := range []string{"Dockerfile", "service.Dockerfile"} {
		f, err := rendered(filepath.Join(dir, name), name+".tmpl", values)
		if err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	return files, nil
}

// Write writes all files, or none if one would replace an existing file without force, or the model.
func (m *Deployment) Write(files []File, force bool) error {
	var started []*fileio.File
	defer func() {
		for _, f := range slices.Backward(started) { // the first one created the folders
			f.Discard()
		}
	}()
	paths := map[string]bool{}
	for _, f := range files {
		if paths[f.Path] {
			return fmt.Errorf("two files would be written to %s: choose another name for one of them", f.Path)
		}
		paths[f.Path] = true
		out, err := fileio.Create(f.Path, fileio.WriteOptions{Force: force, Inputs: []string{m.path}})
		if err != nil {
			return err
		}
		started = append(started, out)
		if _, err := out.Write(f.Content); err != nil {
			return err
		}
		if err := out.Finish(); err != nil {
			return err
		}
	}
	for _, out := range started {
		if err := out.Commit(); err != nil {
			return err
		}
	}
	return nil
}
