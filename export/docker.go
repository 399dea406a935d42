// Files from which Docker builds images that serve a model.

package export

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/miplc/miplc/internal/fileio"
	"github.com/miplc/miplc/internal/native"
	"github.com/miplc/miplc/internal/onnxruntime"
)

// library is the pinned onnxruntime for one architecture of Docker.
type library struct{ Arch, Archive, Platform, Member, SHA256 string }

// libraries returns the libraries for Linux that pip can download.
func libraries() []library {
	var list []library
	for _, p := range onnxruntime.Pins() {
		if arch, ok := strings.CutPrefix(p.System, "linux/"); ok && p.Via == native.ViaPip {
			list = append(list, library{arch, p.Archive, p.Platform, p.Member, p.SHA256})
		}
	}
	return list
}

// Docker returns the files from which Docker builds two images: Dockerfile, which runs miplc serve
// with the model, service.Dockerfile, for a Go service that uses package runtime, and the model.
// version is the version of miplc to install.
func (m *Deployment) Docker(dir, version string) ([]File, error) {
	content, err := fileio.Read(m.path)
	if err != nil {
		return nil, err
	}
	from := libraries()
	if len(from) == 0 {
		return nil, fmt.Errorf("bug: no onnxruntime library is pinned for Linux")
	}
	values := map[string]any{"Name": m.Name, "Version": version, "Libraries": from}
	files := []File{{Path: filepath.Join(dir, "models", m.Name, "1", "model.onnx"), Content: content}}
	for _, name := range []string{"Dockerfile", "service.Dockerfile"} {
		f, err := rendered(filepath.Join(dir, name), name+".tmpl", values)
		if err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	return files, nil
}
