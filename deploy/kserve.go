package deploy

import "path/filepath"

// KServe makes the manifest of an InferenceService that serves a repository made by
// Triton, which lies at storage, such as pvc://models/repository.
func (m *Model) KServe(path, storage string) ([]File, error) {
	manifest, err := rendered(filepath.Clean(path), "inferenceservice.yaml.tmpl", map[string]string{"Name": m.Name, "Storage": storage})
	manifest.Named = true
	return []File{manifest}, err
}
