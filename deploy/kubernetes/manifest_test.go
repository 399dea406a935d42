// Package kubernetes decodes the Jobs that miplc writes with the types of Kubernetes.
// It is a module of its own, so that miplc depends on nothing of Kubernetes.
package kubernetes

import (
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	"sigs.k8s.io/yaml"

	"github.com/miplc/miplc/deploy/kubernetes/manifest"
)

// Unknown, misspelled, doubled and wrongly typed fields of a manifest are errors.
func TestManifestDecodesStrictly(t *testing.T) {
	m := manifest.Build(t)
	for name, flags := range map[string][]string{
		"cpu": {"--cpus", "4", "--memory", "4Gi"},
		"gpu": {"--gpus", "1", "--engine", "gorgonia"},
	} {
		text, shards := m.Plan(t, t.TempDir(), "smoke", flags...)
		var job batchv1.Job
		if err := yaml.UnmarshalStrict(text, &job); err != nil {
			t.Fatalf("%s: %v\n%s", name, err, text)
		}
		s := job.Spec
		if *s.CompletionMode != batchv1.IndexedCompletion || int(*s.Completions) != shards || len(s.PodFailurePolicy.Rules) != 4 {
			t.Errorf("%s: %+v", name, s)
		}
		wrong := strings.Replace(string(text), "backoffLimitPerIndex", "backoffLimitPerIndexes", 1)
		if err := yaml.UnmarshalStrict([]byte(wrong), &job); err == nil {
			t.Errorf("%s: a misspelled field passed", name)
		}
	}
}
