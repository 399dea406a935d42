// A service can use the published module, and a release has everything.

package main

import (
	"archive/zip"
	"bytes"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
)

// The command can be installed from the published module. A service that imports the runtime builds
// with it and does not get the dependencies of training.
func TestPublishedModule(t *testing.T) {
	version, err := committedVersion()
	if err != nil {
		t.Fatal(err)
	}
	proxy, cache := t.TempDir(), t.TempDir()
	if err := publish(version, proxy); err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(t.TempDir(), "miplc")
	host := platform{system: runtime.GOOS, processor: runtime.GOARCH, compiler: "cc"}
	if err := install(version, proxy, cache, host, binary); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(binary, "version").CombinedOutput()
	if err != nil || !strings.HasPrefix(string(out), "miplc "+version[1:]+" (") {
		t.Errorf("%v\n%s", err, out)
	}
	bom := filepath.Join(t.TempDir(), "bom.json")
	if err := describe(binary, bom); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(bom); err != nil || !strings.Contains(string(text),
		`"pkg:golang/github.com/yalue/onnxruntime_go@`) {
		t.Errorf("%v\n%s", err, text)
	}
	service(t, version, proxy, cache)
	small := filepath.Join(t.TempDir(), "miplc") // packing 50 MB takes most of a minute
	if err := os.WriteFile(small, bytes.Repeat([]byte("miplc "), 10000), 0o755); err != nil {
		t.Fatal(err)
	}
	wheels(t, version, cache, small)
	packages(t, version, small, binary)
}

// The archive and the Debian package contain the program, and their bytes depend only on the release. Completions are
// those of host.
func packages(t *testing.T, version, binary, host string) {
	when, err := commitTime()
	if err != nil {
		t.Fatal(err)
	}
	sources := filepath.Join("..", "..")
	archive, deb := "miplc-test.tar.gz", "miplc_"+version[1:]+"_"+runtime.GOARCH+".deb"
	var contents [2]string
	for i := range contents {
		out := t.TempDir()
		if err := pack("miplc-test", binary, sources, out, when); err != nil {
			t.Fatal(err)
		}
		files := []string{archive}
		if _, err := exec.LookPath("dpkg-deb"); err == nil {
			p := platform{system: "linux", processor: runtime.GOARCH}
			if err := debian(version, host, p, binary, sources, out, when); err != nil {
				t.Fatal(err)
			}
			files = append(files, deb)
		} else {
			t.Log("no Debian package is tested: there is no dpkg-deb")
		}
		for _, name := range files {
			data, err := os.ReadFile(filepath.Join(out, name))
			if err != nil {
				t.Fatal(err)
			}
			contents[i] += string(data)
		}
		for _, list := range [][]string{{"tar", "-tzf", archive}, {"dpkg-deb", "-c", deb}}[:len(files)] {
			cmd := exec.Command(list[0], list[1:]...)
			cmd.Dir = out
			text, err := cmd.CombinedOutput()
			if err != nil || !regexp.MustCompile(`(?m)(^miplc-test|/usr/bin)/miplc$`).Match(text) {
				t.Errorf("%v: %v\n%s", list, err, text)
			}
		}
	}
	if contents[0] != contents[1] {
		t.Error("second packages of the same release differ")
	}
}

// The wheel contains the program, and its bytes depend only on the release.
func wheels(t *testing.T, version, cache, binary string) {
	if err := exec.Command(python(), "-c", "import hatchling").Run(); err != nil {
		t.Skipf("%s lacks hatchling, which builds wheels", python())
	}
	var contents [2][]byte
	for i := range contents {
		out := t.TempDir()
		if err := wheel(version, cache, binary, "manylinux_2_28_x86_64", out); err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(out, "miplc-"+version[1:]+"-py3-none-manylinux_2_28_x86_64.whl")
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		contents[i] = data
		files, err := zip.OpenReader(file)
		if err != nil {
			t.Fatal(err)
		}
		defer files.Close()
		for _, name := range []string{"miplc/__init__.py", "miplc/py.typed",
			"miplc-" + version[1:] + ".dist-info/licenses/LICENSE"} {
			if _, err := fs.Stat(files, name); err != nil {
				t.Error(err)
			}
		}
		info, err := fs.Stat(files, "miplc-"+version[1:]+".data/scripts/miplc")
		if err != nil || info.Mode()&0o111 == 0 {
			t.Errorf("the program in the wheel: %v, %v", info, err)
		}
	}
	if !bytes.Equal(contents[0], contents[1]) {
		t.Error("a second wheel of the same release differs")
	}
}

func service(t *testing.T, version, proxy, cache string) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod": "module service\n\ngo 1.26.0\n\nrequire " + path + " " + version + "\n",
		"main.go": `package main

import "github.com/miplc/miplc/runtime"

func main() { println(runtime.ErrEmptyBag.Error()) }
`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	env, err := environment(proxy, cache)
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"run", "."}, {"list", "-deps", "."}} {
		cmd := exec.Command("go", args...)
		cmd.Dir, cmd.Env = dir, env
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("go %v: %v\n%s", args, err, out)
		}
		if args[0] == "run" && !strings.Contains(string(out), "no instances") {
			t.Errorf("the service prints %q", out)
		}
		for _, heavy := range []string{"gorgonia.org/", path + "/train", "google.golang.org/grpc"} {
			if strings.Contains(string(out), heavy) {
				t.Errorf("a service that imports the runtime also depends on %s", heavy)
			}
		}
	}
}

func TestVersions(t *testing.T) {
	for _, wrong := range []string{"", "1.2.3", "v1", "v1.2", "latest", "v1.2.3+x y"} {
		if err := publish(wrong, filepath.Join(t.TempDir(), "proxy")); err == nil {
			t.Errorf("%q is accepted as a version", wrong)
		}
	}
}

// The checksums cover every file, including those of the module proxy.
func TestSums(t *testing.T) {
	dir := t.TempDir()
	deep := filepath.Join(dir, "proxy", "m", "@v")
	if err := os.MkdirAll(deep, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{filepath.Join(dir, "miplc"), filepath.Join(deep, "v1.0.0.zip")} {
		if err := os.WriteFile(name, []byte("abc"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := sums(dir); err != nil {
		t.Fatal(err)
	}
	const sum = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
	text, err := os.ReadFile(filepath.Join(dir, "SHA256SUMS"))
	if want := sum + "  miplc\n" + sum + "  proxy/m/@v/v1.0.0.zip\n"; err != nil || string(text) != want {
		t.Errorf("%v\n%s, want\n%s", err, text, want)
	}
}

// Only a tagged commit is released, and nothing is written if the tag is missing.
func TestUntaggedCommit(t *testing.T) {
	version, err := committedVersion()
	if err != nil {
		t.Fatal(err)
	}
	if tagged(version) == nil {
		t.Skipf("this commit is tagged %s", version)
	}
	out := filepath.Join(t.TempDir(), "dist")
	if err := release(out, false, ""); err == nil || !strings.Contains(err.Error(), "no tag "+version) {
		t.Errorf("an untagged commit is released: %v", err)
	}
	if _, err := os.Stat(out); err == nil {
		t.Error("the folder was created")
	}
}

// ssh-keygen verifies the signature, and refuses it for other sums.
func TestSignature(t *testing.T) {
	dir := t.TempDir()
	key, file := filepath.Join(dir, "key"), filepath.Join(dir, "SHA256SUMS")
	if out, err := exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key).CombinedOutput(); err != nil {
		t.Skipf("no ssh-keygen: %v\n%s", err, out)
	}
	public, err := os.ReadFile(key + ".pub")
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"SHA256SUMS": "ab  miplc\n", "signers": "miplc " + string(public)} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("MIPLC_SIGNING_KEY", key)
	if err := sign(file); err != nil {
		t.Fatal(err)
	}
	for text, good := range map[string]bool{"ab  miplc\n": true, "cd  miplc\n": false} {
		verify := exec.Command("ssh-keygen", "-Y", "verify", "-f", filepath.Join(dir, "signers"), "-I", "miplc", "-n",
			"miplc-release", "-s", file+".sig")
		verify.Stdin = strings.NewReader(text)
		if out, err := verify.CombinedOutput(); (err == nil) != good {
			t.Errorf("the sums %q: %v\n%s", text, err, out)
		}
	}
}
