// Package docker checks the Dockerfiles of this repository, and those that miplc
// writes, with BuildKit's own parser, linter and planner, as docker build --check does.
// It is a module of its own, so that miplc depends on nothing of BuildKit.
package docker

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
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

// root is the repository around this module.
const root = "../.."

// builder stands for the side of docker build that knows contexts and base images. Of
// a base image it knows nothing but that there is one.
type builder struct {
	client.Client
	contexts []string // what --build-context names
}

func (b builder) BuildOpts() client.BuildOpts {
	opts := map[string]string{}
	for _, name := range b.contexts {
		opts["context:"+name] = "local:" + name
	}
	return client.BuildOpts{Opts: opts, LLBCaps: pb.Caps.CapSet(pb.Caps.All()), Caps: pb.Caps.CapSet(pb.Caps.All())}
}

// Solve is asked for .dockerignore of a context.
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

func (builder) ResolveImageConfig(_ context.Context, ref string, _ sourceresolver.Opt) (string, digest.Digest, []byte, error) {
	return ref, "", []byte("{}"), nil
}

// check returns what BuildKit objects to in a Dockerfile, for one architecture.
func check(t *testing.T, dockerfile []byte, arch string, contexts ...string) []string {
	t.Helper()
	b := builder{contexts: contexts}
	ui, err := dockerui.NewClient(b)
	if err != nil {
		t.Fatal(err)
	}
	source := llb.NewSourceMap(nil, "Dockerfile", "Dockerfile", dockerfile)
	source.Definition = &llb.Definition{} // of the context it came from
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

// dockerfiles are those of miplc by the name of their file, and the contexts that each
// says it takes.
func dockerfiles(t *testing.T) map[string][]byte {
	t.Helper()
	dir := t.TempDir()
	for _, args := range [][]string{{"build", "quickstart", "-o", filepath.Join(dir, "model")}, {"export", filepath.Join(dir, "model"), "--docker", filepath.Join(dir, "image")}} {
		cmd := exec.Command("go", append([]string{"run", "./cmd/miplc"}, args...)...)
		cmd.Dir = root
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	files := map[string][]byte{}
	for _, path := range []string{filepath.Join(dir, "image", "Dockerfile"), filepath.Join(dir, "image", "service.Dockerfile"), filepath.Join(root, "deploy", "worker", "Dockerfile")} {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		files[filepath.Base(filepath.Dir(path))+"/"+filepath.Base(path)] = text
	}
	return files
}

// The context that service.Dockerfile takes.
const service = "service"

// BuildKit has nothing to say of our Dockerfiles, and says what is wrong with others.
func TestDockerfiles(t *testing.T) {
	for name, text := range dockerfiles(t) {
		for _, arch := range []string{"amd64", "arm64"} {
			if said := check(t, text, arch, service); len(said) > 0 {
				t.Errorf("%s for %s: %s", name, arch, strings.Join(said, "; "))
			}
		}
		for _, fault := range []struct{ right, wrong, said string }{
			{"FROM golang", "FORM golang", "unknown instruction: FORM"},
			{"FROM golang:1.26-bookworm AS build", "FROM golang:1.26-bookworm as build", "FromAsCasing"},
			{"--from=build ", "--from=Build:x! ", "invalid"},
			{"ENTRYPOINT [", "ENTRYPOINT ", "JSONArgsRecommended"},
			{"USER 65532:65532", "USER 65532:65532\nHEALTHCHECK --interval=x CMD true", "invalid duration"},
			{"COPY ", "COPY --chmood=1 ", "unknown flag"},
		} {
			wrong := bytes.Replace(text, []byte(fault.right), []byte(fault.wrong), 1)
			if said := strings.Join(check(t, wrong, "amd64", service), "; "); !strings.Contains(said, fault.said) {
				t.Errorf("%s with %q: %q, which does not say %q", name, fault.wrong, said, fault.said)
			}
		}
	}
}
