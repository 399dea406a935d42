// Package apiserver sends the manifests that miplc writes to a real Kubernetes API server: etcd,
// kube-apiserver, and the definition and admission of KServe's InferenceService, all built from
// their published Go modules.
package apiserver

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/keyutil"
)

// program returns the path of a tool of this module and builds it if needed.
func program(t *testing.T, tool string) string {
	t.Helper()
	if out, err := exec.Command("go", "list", "-deps", tool).CombinedOutput(); err != nil {
		t.Skipf("the modules of %s are not available and cannot be downloaded: %v\n%s", tool, err, out[max(0, len(out)-500):])
	}
	var said strings.Builder
	build := exec.Command("go", "tool", "-n", tool)
	build.Stderr = &said
	path, err := build.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s", tool, err, said.String())
	}
	return strings.TrimSpace(string(path))
}

// address returns a free local address.
func address(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// server is a kube-apiserver with its etcd. Both end with the test.
type server struct {
	*kubernetes.Clientset
	kubeconfig string
}

func start(t *testing.T) *server {
	t.Helper()
	etcd, apiserver := program(t, "go.etcd.io/etcd/server/v3"), program(t, "k8s.io/kubernetes/cmd/kube-apiserver")
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	clients, peers := "http://"+address(t), "http://"+address(t)
	background(t, dir, etcd, "--data-dir", filepath.Join(dir, "etcd"), "--listen-client-urls", clients,
		"--advertise-client-urls", clients,
		"--listen-peer-urls", peers, "--initial-advertise-peer-urls", peers, "--initial-cluster", "default="+peers)

	secure, token := address(t), fmt.Sprint("token-", os.Getpid())
	_, port, _ := net.SplitHostPort(secure)
	key, err := keyutil.MakeEllipticPrivateKeyPEM()
	if err != nil {
		t.Fatal(err)
	}
	accounts := write("accounts.key", string(key))
	ended := background(t, dir, apiserver, "--etcd-servers", clients, "--bind-address", "127.0.0.1", "--advertise-address",
		"127.0.0.1", "--secure-port", port,
		"--cert-dir", dir, "--service-cluster-ip-range", "10.0.0.0/24", "--token-auth-file", write("tokens.csv",
			token+",admin,admin,system:masters\n"),
		"--service-account-issuer", "https://kubernetes.default.svc", "--service-account-key-file", accounts,
		"--service-account-signing-key-file", accounts,
		"--authorization-mode", "RBAC", "--disable-admission-plugins", "ServiceAccount", "--endpoint-reconciler-type", "none")

	s := &server{kubeconfig: filepath.Join(dir, "kubeconfig")}
	config := clientcmdapi.NewConfig()
	config.Clusters["here"] = &clientcmdapi.Cluster{Server: "https://" + secure, CertificateAuthority: filepath.Join(dir,
		"apiserver.crt")}
	config.AuthInfos["admin"] = &clientcmdapi.AuthInfo{Token: token}
	config.Contexts["here"] = &clientcmdapi.Context{Cluster: "here", AuthInfo: "admin"}
	config.CurrentContext = "here"
	if err := clientcmd.WriteToFile(*config, s.kubeconfig); err != nil {
		t.Fatal(err)
	}
	// The server writes its certificate when it starts. It creates its first namespaces last.
	eventually(t, func() error {
		select {
		case err := <-ended:
			t.Fatalf("kube-apiserver ended: %v", err)
		default:
		}
		rest, err := clientcmd.BuildConfigFromFlags("", s.kubeconfig)
		if err != nil {
			return err
		}
		if s.Clientset, err = kubernetes.NewForConfig(rest); err != nil {
			return err
		}
		_, err = s.CoreV1().Namespaces().Get(t.Context(), namespace, metav1.GetOptions{})
		return err
	})
	return s
}

// background runs a program until the end of the test, and logs the end of its output if the test
// failed. If the program ends earlier, the channel receives its error.
func background(t *testing.T, dir, program string, args ...string) <-chan error {
	t.Helper()
	log, err := os.Create(filepath.Join(dir, filepath.Base(program)+".log"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, log, log
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 20 * time.Second
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended, waited := make(chan error, 1), make(chan struct{})
	go func() {
		ended <- cmd.Wait()
		close(waited)
	}()
	t.Cleanup(func() {
		stop()
		<-waited
		log.Close()
		if text, _ := os.ReadFile(log.Name()); t.Failed() {
			t.Logf("%s\n%s", program, text[max(0, len(text)-2000):])
		}
	})
	return ended
}

// eventually retries for five minutes until there is no error.
func eventually(t *testing.T, try func() error) {
	t.Helper()
	var err error
	for range 1500 {
		if err = try(); err == nil {
			return
		}
		time.Sleep(200 * time.Millisecond)
	}
	t.Fatalf("after five minutes: %v", err)
}

// create posts a manifest unchanged, like kubectl create --validate=strict.
func (s *server) create(t *testing.T, path string, manifest []byte, dryRun bool) error {
	r := s.RESTClient().Post().AbsPath(path).Param("fieldValidation", metav1.FieldValidationStrict).SetHeader(
		"Content-Type", "application/yaml").Body(manifest)
	if dryRun {
		r = r.Param("dryRun", metav1.DryRunAll)
	}
	return r.Do(t.Context()).Error()
}
