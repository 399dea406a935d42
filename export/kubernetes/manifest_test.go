// The manifests decode strictly with the types of Kubernetes: they have no unknown, misspelled or duplicate field.

package kubernetes

import (
	"bytes"
	"os"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// Unknown, misspelled, duplicate and wrongly typed fields of a manifest are errors.
func TestManifestDecodesStrictly(t *testing.T) {
	m := Build(t)
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
		if *s.CompletionMode != batchv1.IndexedCompletion || int(*s.Completions) != shards ||
			len(s.PodFailurePolicy.Rules) != 4 {
			t.Errorf("%s: %+v", name, s)
		}
		wrong := strings.Replace(string(text), "backoffLimitPerIndex", "backoffLimitPerIndexes", 1)
		if err := yaml.UnmarshalStrict([]byte(wrong), &job); err == nil {
			t.Errorf("%s: a misspelled field was accepted", name)
		}
	}
}

// The manifest that the tutorial applies has no unknown field, and its Service selects its pods.
func TestServeExampleDecodesStrictly(t *testing.T) {
	text, err := os.ReadFile("../../examples/kubernetes/serve.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var deployment appsv1.Deployment
	var service corev1.Service
	first, second, _ := bytes.Cut(text, []byte("\n---\n"))
	if err := yaml.UnmarshalStrict(first, &deployment); err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict(second, &service); err != nil {
		t.Fatal(err)
	}
	for key, value := range service.Spec.Selector {
		if deployment.Spec.Template.Labels[key] != value || deployment.Spec.Selector.MatchLabels[key] != value {
			t.Errorf("the Service selects %s=%s, which the pods do not have", key, value)
		}
	}
	container, ports := deployment.Spec.Template.Spec.Containers[0], map[string]bool{}
	for _, p := range container.Ports {
		ports[p.Name] = true
	}
	for _, p := range service.Spec.Ports {
		if !ports[p.TargetPort.StrVal] || p.Name == "admin" {
			t.Errorf("the Service offers port %s, which the container lacks or uses for probes", p.TargetPort.StrVal)
		}
	}
	for _, probe := range []*corev1.Probe{container.ReadinessProbe, container.LivenessProbe} {
		if port := probe.HTTPGet.Port.StrVal; port != "admin" || !ports[port] {
			t.Errorf("a probe uses port %s instead of the admin listener", port)
		}
	}
}
