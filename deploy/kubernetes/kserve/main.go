// Command kserve answers an API server for KServe's controller: it gives
// InferenceServices KServe's defaults, by the configuration that the API server of
// KUBECONFIG holds, and KServe's validation. It prints where it does so and by which
// certificate, and ends with its standard input.
//
// It is a module of its own, for KServe is bound to other versions of Kubernetes.
package main

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"

	"github.com/go-logr/logr"
	"github.com/kserve/kserve/pkg/apis/serving/v1beta1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

func main() {
	if err := answer(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func answer(in io.Reader, out io.Writer) error {
	log.SetLogger(logr.Discard())
	scheme := runtime.NewScheme()
	if err := v1beta1.AddToScheme(scheme); err != nil {
		return err
	}
	hooks := http.NewServeMux()
	hooks.Handle("/default", admission.WithCustomDefaulter(scheme, &v1beta1.InferenceService{}, &v1beta1.InferenceServiceDefaulter{}))
	hooks.Handle("/validate", admission.WithCustomValidator(scheme, &v1beta1.InferenceService{}, &v1beta1.InferenceServiceValidator{}))
	server := httptest.NewTLSServer(hooks)
	defer server.Close()
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	if err := json.NewEncoder(out).Encode(map[string]any{"url": server.URL, "certificate": certificate}); err != nil {
		return err
	}
	_, err := io.Copy(io.Discard, in)
	return err
}
