// KServe accepts the manifests that miplc writes, and chooses a runtime that supports the model.

package apiserver

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"
)

// kserve is the folder of the KServe module.
type kserve string

// file reads a file of KServe.
func (k kserve) file(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(string(k), filepath.FromSlash(path)))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// define defines InferenceServices as KServe does.
func define(t *testing.T, s *server) kserve {
	t.Helper()
	list := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/kserve/kserve")
	list.Dir = "../kserve"
	out, err := list.Output()
	if err != nil || len(out) < 2 {
		t.Skipf("the module of KServe is not available and cannot be downloaded: %v", err)
	}
	k := kserve(strings.TrimSpace(string(out)))
	for _, part := range [][2]string{
		{"/api/v1/namespaces", "config/base/namespace.yaml"},
		// makes services run on Knative by default
		{"/api/v1/namespaces/kserve/configmaps", "config/configmap/inferenceservice.yaml"},
		{"/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
			"config/crd/full/serving.kserve.io_inferenceservices.yaml"},
	} {
		if err := s.create(t, part[0], k.file(t, part[1]), false); err != nil {
			t.Fatalf("%s: %v", part[1], err)
		}
	}
	eventually(t, func() error { return s.RESTClient().Get().AbsPath(inferenceServices).Do(t.Context()).Error() })
	return k
}

// ask configures the API server to call the command kserve for defaults and validation, in place of
// KServe's controller.
func (s *server) ask(t *testing.T) {
	t.Helper()
	program := filepath.Join(t.TempDir(), "kserve")
	build := exec.Command("go", "build", "-o", program, ".")
	build.Dir = "../kserve"
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	cmd := exec.Command(program)
	cmd.Env = append(os.Environ(), clientcmd.RecommendedConfigPathEnvVar+"="+s.kubeconfig)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	})
	var hooks struct {
		URL         string
		Certificate []byte
	}
	if err := json.NewDecoder(out).Decode(&hooks); err != nil {
		t.Fatal(err)
	}

	at := func(path string) admissionv1.WebhookClientConfig {
		return admissionv1.WebhookClientConfig{URL: ptr.To(hooks.URL + path), CABundle: hooks.Certificate}
	}
	meta, none, versions := metav1.ObjectMeta{Name: "kserve"}, ptr.To(admissionv1.SideEffectClassNone), []string{"v1"}
	rules := []admissionv1.RuleWithOperations{{
		Operations: []admissionv1.OperationType{admissionv1.Create, admissionv1.Update},
		Rule: admissionv1.Rule{APIGroups: []string{"serving.kserve.io"}, APIVersions: []string{"v1beta1"},
			Resources: []string{"inferenceservices"}},
	}}
	registered := s.AdmissionregistrationV1()
	if _, err := registered.MutatingWebhookConfigurations().Create(t.Context(), &admissionv1.MutatingWebhookConfiguration{
		ObjectMeta: meta, Webhooks: []admissionv1.MutatingWebhook{{
			Name: "default.kserve.io", ClientConfig: at("/default"), Rules: rules, SideEffects: none,
			AdmissionReviewVersions: versions}}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := registered.ValidatingWebhookConfigurations().Create(t.Context(),
		&admissionv1.ValidatingWebhookConfiguration{ObjectMeta: meta, Webhooks: []admissionv1.ValidatingWebhook{{
			Name: "validate.kserve.io", ClientConfig: at("/validate"), Rules: rules, SideEffects: none,
			AdmissionReviewVersions: versions}}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() error { // the server notices the configuration late
		err := s.create(t, inferenceServices, []byte("{apiVersion: serving.kserve.io/v1beta1, kind: InferenceService, "+
			"metadata: {name: 1st}, spec: {predictor: {model: {modelFormat: {name: onnx}}}}}"), true)
		if err != nil && strings.Contains(err.Error(), `"validate.kserve.io" denied`) {
			return nil
		}
		return fmt.Errorf("KServe's validation does not answer: %w", err)
	})
}

// runs checks that the runtime that an InferenceService names supports its model, and that KServe
// deploys it as a plain Deployment.
func (k kserve) runs(t *testing.T, s *server, name string) {
	t.Helper()
	stored, err := s.RESTClient().Get().AbsPath(inferenceServices, name).Do(t.Context()).Raw()
	if err != nil {
		t.Fatal(err)
	}
	type format struct{ Name string }
	var service struct {
		Metadata struct{ Annotations map[string]string }
		Spec     struct {
			Predictor struct {
				Model struct {
					Runtime, ProtocolVersion string
					ModelFormat              format
				}
			}
		}
	}
	if err := yaml.Unmarshal(stored, &service); err != nil {
		t.Fatal(err)
	}
	model := service.Spec.Predictor.Model
	var with struct {
		Metadata struct{ Name string }
		Spec     struct {
			SupportedModelFormats []format
			ProtocolVersions      []string
		}
	}
	if err := yaml.Unmarshal(k.file(t, "config/runtimes/"+model.Runtime+".yaml"), &with); err != nil {
		t.Fatal(err)
	}
	if with.Metadata.Name != model.Runtime || !slices.Contains(with.Spec.SupportedModelFormats, model.ModelFormat) ||
		!slices.Contains(with.Spec.ProtocolVersions, model.ProtocolVersion) {
		t.Errorf("%+v does not run %+v", with, model)
	}
	if mode := service.Metadata.Annotations["serving.kserve.io/deploymentMode"]; mode != "Standard" {
		t.Errorf("KServe deploys it as %q", mode)
	}
}
