// The manifest that deploys a model repository on KServe.

package export

import "path/filepath"

// KServe returns the manifest of an InferenceService for a repository that Triton returned, at the
// given storage location, e.g. pvc://models/repository.
func (m *Deployment) KServe(path, storage string) ([]File, error) {
	manifest, err := rendered(filepath.Clean(path), "inferenceservice.yaml.tmpl", map[string]string{"Name": m.Name,
		"Storage": storage})
	manifest.Named = true
	return []File{manifest}, err
}
