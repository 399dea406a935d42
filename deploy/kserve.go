package deploy

// KServe writes the manifest of an InferenceService that serves a repository written
// by Triton, which lies at storage, such as pvc://models/repository. It gives the path.
func (m *Model) KServe(path, storage string, force bool) ([]string, error) {
	manifest, err := rendered("", "inferenceservice.yaml.tmpl", map[string]string{"Name": m.Name, "Storage": storage})
	if err != nil {
		return nil, err
	}
	return write(path, force, []string{m.path}, []file{manifest})
}
