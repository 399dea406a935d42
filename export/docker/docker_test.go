// Package docker checks the Dockerfiles of this repository, and those that miplc writes, with
// BuildKit's own parser, linter and planner, like docker build --check. It is a separate module, so
// that miplc does not depend on BuildKit.
package docker

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/moby/buildkit/client/llb"
	"github.com/moby/buildkit/client/llb/sourceresolver"
	"github.com/moby/buildkit/frontend/dockerfile/dockerfile2llb"
	"github.com/moby/buildkit/frontend/dockerui"
	"github.com/moby/buildkit/frontend/gateway/client"
	"github.com/moby/buildkit/solver/pb"
	digest "github.com/opencontainers/go-digest"
	ocispecs "github.com/opencontainers/image-spec/specs-go/v1"
)

// root is the repository that contains this module.
const root = "../.."

// builder simulates the part of docker build that resolves contexts and base images. It accepts
// every base image.
type builder struct {
	client.Client
	contexts []string // names given by --build-context
}

func (b builder) BuildOpts() client.BuildOpts {
	opts := map[string]string{}
	for _, name := range b.contexts {
		opts["context:"+name] = "local:" + name
	}
	return client.BuildOpts{Opts: opts, LLBCaps: pb.Caps.CapSet(pb.Caps.All()), Caps: pb.Caps.CapSet(pb.Caps.All())}
}

// Solve is called for the .dockerignore of a context.
func (builder) Solve(context.Context, client.SolveRequest) (*client.Result, error) {
	r := client.NewResult()
	r.SetRef(empty{})
	return r, nil
}

// empty is a folder without files.
type empty struct{ client.Reference }

func (empty) ReadFile(context.Context, client.ReadRequest) ([]byte, error) {
	return nil, os.ErrNotExist
}

func (builder) ResolveImageConfig(_ context.Context, ref string, _ sourceresolver.Opt) (string, digest.Digest, []byte,
	error) {
	return ref, "", []byte("{}"), nil
}

// check returns the complaints of BuildKit about a Dockerfile, for one architecture.
func check(t *testing.T, dockerfile []byte, arch string, contexts ...string) []string {
	t.Helper()
	b := builder{contexts: contexts}
	ui, err := dockerui.NewClient(b)
	if err != nil {
		t.Fatal(err)
	}
	source := llb.NewSourceMap(nil, "Dockerfile", "Dockerfile", dockerfile)
	source.Definition = &llb.Definition{} // BuildKit needs the definition of its context
	results, err := dockerfile2llb.DockerfileLint(t.Context(), dockerfile, dockerfile2llb.ConvertOpt{
		Client: ui, MetaResolver: b, SourceMap: source,
		TargetPlatform: &ocispecs.Platform{OS: "linux", Architecture: arch},
	})
	if err != nil {
		t.Fatal(err)
	}
	var said []string
	if results.Error != nil {
		said = append(said, results.Error.Message)
	}
	for _, w := range results.Warnings {
		said = append(said, w.RuleName+": "+w.Detail)
	}
	return said
}

// dockerfiles returns the Dockerfiles of miplc by file name.
func dockerfiles(t *testing.T) map[string][]byte {
	t.Helper()
	dir := t.TempDir()
	for _, args := range [][]string{{"build", "quickstart", "-o", filepath.Join(dir, "model")},
		{"export", filepath.Join(dir, "model"), "--docker", filepath.Join(dir, "image")},
		{"export", filepath.Join(dir, "model"), "--docker", filepath.Join(dir, "local"), "--docker-local"}} {
		cmd := exec.Command("go", append([]string{"run", "./cmd/miplc"}, args...)...)
		cmd.Dir = root
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	files := map[string][]byte{}
	for _, path := range []string{filepath.Join(dir, "image", "Dockerfile"), filepath.Join(dir, "image",
		"service.Dockerfile"), filepath.Join(dir, "local", "Dockerfile"), filepath.Join(root, "export", "worker",
		"Dockerfile"), filepath.Join(root, "internal", "release", "Dockerfile")} {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		files[filepath.Base(filepath.Dir(path))+"/"+filepath.Base(path)] = text
	}
	return files
}

// service is the context that service.Dockerfile uses.
const service = "service"

// BuildKit does not complain about the Dockerfiles of miplc, and reports mistakes in changed ones.
func TestDockerfiles(t *testing.T) {
	for name, text := range dockerfiles(t) {
		for _, arch := range []string{"amd64", "arm64"} {
			if said := check(t, text, arch, service); len(said) > 0 {
				t.Errorf("%s for %s: %s", name, arch, strings.Join(said, "; "))
			}
		}
		for _, fault := range []struct{ right, wrong, said string }{
			{"FROM golang", "FORM golang", "unknown instruction: FORM"},
			{" AS build", " as build", "FromAsCasing"},
			{"--from=build ", "--from=Build:x! ", "invalid"},
			{"ENTRYPOINT [", "ENTRYPOINT ", "JSONArgsRecommended"},
			{"USER 65532:65532", "USER 65532:65532\nHEALTHCHECK --interval=x CMD true", "invalid duration"},
			{"COPY ", "COPY --chmood=1 ", "unknown flag"},
		} {
			if !bytes.Contains(text, []byte(fault.right)) {
				continue // other Dockerfiles contain it
			}
			wrong := bytes.Replace(text, []byte(fault.right), []byte(fault.wrong), 1)
			if said := strings.Join(check(t, wrong, "amd64", service), "; "); !strings.Contains(said, fault.said) {
				t.Errorf("%s with %q: %q, want %q", name, fault.wrong, said, fault.said)
			}
		}
	}
}

// Base images are pinned by tag and digest, and each has the same digest in all files. A tag by itself
// can point to another image tomorrow.
func TestBaseImagesHaveDigests(t *testing.T) {
	files := dockerfiles(t)
	definition, err := os.ReadFile(filepath.Join(root, "export", "worker", "apptainer.def"))
	if err != nil {
		t.Fatal(err)
	}
	files["worker/apptainer.def"] = definition
	from := regexp.MustCompile(`(?m)^(?:FROM|From:) (\S+)`)
	pinned := regexp.MustCompile(`^([a-z]+:[\w.-]+)@(sha256:[0-9a-f]{64})$`)
	digests := map[string]string{}
	for name, text := range files {
		for _, match := range from.FindAllSubmatch(text, -1) {
			image := string(match[1])
			if image == "scratch" {
				continue
			}
			parts := pinned.FindStringSubmatch(image)
			if parts == nil {
				t.Errorf("%s: the base image %s has no digest", name, image)
				continue
			}
			if other, found := digests[parts[1]]; found && other != parts[2] {
				t.Errorf("%s: the base image %s has the digest %s, in another file %s", name, parts[1], parts[2], other)
			}
			digests[parts[1]] = parts[2]
		}
	}
	if len(digests) != 3 {
		t.Errorf("the base images are %v, want golang, debian and python", digests)
	}
}
