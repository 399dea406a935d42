// Package kubernetes tests the manifests of this folder: they decode strictly with the types of Kubernetes, so they
// have no unknown, misspelled or duplicate field. It is a separate module, so that miplc does not depend on Kubernetes.
package kubernetes

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

func decode(t *testing.T, text []byte, to any) {
	t.Helper()
	if err := yaml.UnmarshalStrict(text, to); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// The Job repeats its values consistently. Its rules first keep evicted pods running, and only then consider exit
// codes.
func TestExperiment(t *testing.T) {
	text := read(t, "experiment.yaml")
	var job batchv1.Job
	decode(t, text, &job)
	s := job.Spec
	if *s.CompletionMode != batchv1.IndexedCompletion || *s.MaxFailedIndexes != *s.Completions {
		t.Errorf("%+v", s)
	}
	var rules []string
	for _, r := range s.PodFailurePolicy.Rules {
		if len(r.OnPodConditions) == 1 {
			rules = append(rules, fmt.Sprint(r.Action, r.OnPodConditions[0].Type))
		} else {
			rules = append(rules, fmt.Sprint(r.Action, r.OnExitCodes.Values))
		}
	}
	if want := []string{"IgnoreDisruptionTarget", "FailJob[2]", "FailIndex[1]", "Count[75]"}; !slices.Equal(rules, want) {
		t.Errorf("rules %v, want %v", rules, want)
	}
	env := map[string]string{}
	for _, e := range s.Template.Spec.Containers[0].Env {
		env[e.Name] = e.Value
	}
	plan := env["MIPLC_PLAN"]
	if env["MIPLC_SHARDS"] != fmt.Sprint(*s.Completions) || job.Name != "miplc-"+plan ||
		job.Labels["miplc/plan"] != plan || s.Template.Labels["miplc/plan"] != plan {
		t.Errorf("%v, %d completions, labels %v and %v", env, *s.Completions, job.Labels, s.Template.Labels)
	}
	wrong := bytes.Replace(text, []byte("backoffLimitPerIndex"), []byte("backoffLimitPerIndexes"), 1)
	if err := yaml.UnmarshalStrict(wrong, &job); err == nil {
		t.Error("a misspelled field was accepted")
	}
}

// The Service selects the pods of the Deployment, and probes use the admin listener.
func TestServe(t *testing.T) {
	var deployment appsv1.Deployment
	var service corev1.Service
	first, second, _ := bytes.Cut(read(t, "serve.yaml"), []byte("\n---\n"))
	decode(t, first, &deployment)
	decode(t, second, &service)
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
