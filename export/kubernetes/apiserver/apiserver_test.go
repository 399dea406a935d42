// A real Kubernetes API server accepts the manifests that miplc writes, and rejects mistakes in them.

package apiserver

import (
	"bytes"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/miplc/miplc/export/kubernetes"
)

const (
	namespace         = "default"
	jobs              = "/apis/batch/v1/namespaces/" + namespace + "/jobs"
	inferenceServices = "/apis/serving.kserve.io/v1beta1/namespaces/" + namespace + "/inferenceservices"
)

// The API server creates the manifests that miplc writes, and rejects each mistake in them.
func TestManifests(t *testing.T) {
	m := kubernetes.Build(t)
	s := start(t)
	for name, flags := range map[string][]string{
		"cpu": {"--cpus", "4", "--memory", "4Gi"},
		"gpu": {"--gpus", "1", "--engine", "gorgonia", "--claim", "data/smoke"},
	} {
		t.Run("Job "+name, func(t *testing.T) {
			text, _ := m.Plan(t, t.TempDir(), "smoke", flags...)
			s.refuses(t, jobs, text, []fault{
				{"backoffLimitPerIndex:", "backoffLimitPerIndexes:", `unknown field "spec.backoffLimitPerIndexes"`},
				{"completionMode: Indexed", "completionMode: Indexed\n  completionMode: Indexed", `"completionMode" already set`},
				{"completionMode: Indexed", "completionMode: Index", "Unsupported value"},
				{"restartPolicy: Never", "restartPolicy: OnFailure",
					`only "Never" is supported when podFailurePolicy is specified`},
				{"containerName: miplc, operator: In, values: [2]", "containerName: other, operator: In, values: [2]",
					"must be one of the container or initContainer names"},
				{"{name: tmp, emptyDir: {}}", "{name: temp, emptyDir: {}}", "volumeMounts"},
			})
			s.accepts(t, jobs, text)
		})
	}
	t.Run("InferenceService", func(t *testing.T) {
		kserve := define(t, s)
		one, batched := m.KServe(t, "bag"), m.KServe(t, "batch")
		s.refuses(t, inferenceServices, one, []fault{
			{"scaleMetric:", "scaleMetrics:", `unknown field "spec.predictor.scaleMetrics"`},
			{"minReplicas: 1", "minReplicas: 1\n    minReplicas: 1", `"minReplicas" already set`},
			{"minReplicas: 1", "minReplicas: one", "must be of type integer"},
			{"scaleMetric: cpu", "scaleMetric: load", "Unsupported value"},
			{"name: onnx", `version: "1"`, "spec.predictor.model.modelFormat.name: Required value"},
			{"memory: 1Gi}", "memory: 1Gib}", "should match"},
		})
		s.ask(t)
		s.refuses(t, inferenceServices, one, []fault{
			{"name: quickstart", "name: 1quickstart", "InferenceService name"},
			{"scaleTarget: 70", "scaleTarget: 170", "target utilization percentage"},
			{"autoscalerClass: hpa", "autoscalerClass: load", "not a supported autoscaler class"},
			{"serving.kserve.io/deploymentMode: RawDeployment", "mode: of-KServe", "[cpu] is not a supported metric"},
		})
		for _, text := range [][]byte{one, batched} {
			s.accepts(t, inferenceServices, text)
			kserve.runs(t, s, name(text))
		}
	})
}

// fault is a part of a manifest, a wrong replacement, and the message of the server.
type fault struct{ right, wrong, said string }

func (s *server) refuses(t *testing.T, path string, manifest []byte, faults []fault) {
	t.Helper()
	for _, f := range faults {
		if !bytes.Contains(manifest, []byte(f.right)) {
			t.Errorf("there is no %q in\n%s", f.right, manifest)
			continue
		}
		wrong := bytes.Replace(manifest, []byte(f.right), []byte(f.wrong), 1)
		for _, dryRun := range []bool{true, false} {
			if err := s.create(t, path, wrong, dryRun); err == nil || !strings.Contains(err.Error(), f.said) {
				t.Errorf("%q in place of %q: %v, want %q", f.wrong, f.right, err, f.said)
			}
		}
	}
}

// accepts creates an object: a dry run does not store it, the next call does, and a third one is a
// conflict.
func (s *server) accepts(t *testing.T, path string, manifest []byte) {
	t.Helper()
	if err := s.create(t, path, manifest, true); err != nil {
		t.Fatalf("%v\n%s", err, manifest)
	}
	object := s.RESTClient().Get().AbsPath(path, name(manifest))
	if err := object.Do(t.Context()).Error(); !apierrors.IsNotFound(err) {
		t.Errorf("after a dry run: %v", err)
	}
	if err := s.create(t, path, manifest, false); err != nil {
		t.Errorf("%v\n%s", err, manifest)
	}
	if err := object.Do(t.Context()).Error(); err != nil {
		t.Error(err)
	}
	if err := s.create(t, path, manifest, false); !apierrors.IsAlreadyExists(err) {
		t.Errorf("created twice: %v", err)
	}
}

// name returns the first name in a manifest, that of the metadata.
func name(manifest []byte) string {
	_, rest, _ := bytes.Cut(manifest, []byte("\n  name: "))
	line, _, _ := bytes.Cut(rest, []byte("\n"))
	return strings.Trim(string(line), `"`)
}
