// Command kserve plays KServe's controller for an API server in tests: it applies KServe's defaults
// and validation to InferenceServices, with the configuration in the API server of KUBECONFIG. It
// prints its address and certificate, and exits when its standard input ends.
//
// It is a separate module, because KServe needs other versions of Kubernetes.
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
	hooks.Handle("/default", admission.WithCustomDefaulter(scheme, &v1beta1.InferenceService{},
		&v1beta1.InferenceServiceDefaulter{}))
	hooks.Handle("/validate", admission.WithCustomValidator(scheme, &v1beta1.InferenceService{},
		&v1beta1.InferenceServiceValidator{}))
	server := httptest.NewTLSServer(hooks)
	defer server.Close()
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	if err := json.NewEncoder(out).Encode(map[string]any{"url": server.URL, "certificate": certificate}); err != nil {
		return err
	}
	_, err := io.Copy(io.Discard, in)
	return err
}
