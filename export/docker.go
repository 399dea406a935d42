// Files from which Docker builds images that serve a model.

package export

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/miplc/miplc/internal/fileio"
	"github.com/miplc/miplc/internal/native"
	"github.com/miplc/miplc/internal/onnxruntime"
)

// Docker returns the files from which Docker builds two images: Dockerfile, which runs miplc serve
// with the model, service.Dockerfile, for a Go service that uses package runtime, and the model.
// version is the version of miplc to install.
func (m *Deployment) Docker(dir, version string) ([]File, error) {
	content, err := fileio.Read(m.path)
	if err != nil {
		return nil, err
	}
	pins := slices.DeleteFunc(slices.Clone(onnxruntime.Pins()), func(p native.Pin) bool {
		return !strings.HasPrefix(p.System, "linux/") || p.Via != native.ViaPip
	})
	values := map[string]any{"Name": m.Name, "Version": version, "Libraries": pins}
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
