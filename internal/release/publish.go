// The module as a module proxy serves it.

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"golang.org/x/mod/module"
	"golang.org/x/mod/semver"
	"golang.org/x/mod/zip"
)

const path = "github.com/miplc/miplc"

// publish writes the checked-out commit to the folder proxy as a Go module proxy serves it
// (https://go.dev/ref/mod#goproxy-protocol).
func publish(version, proxy string) error {
	if !semver.IsValid(version) || semver.Canonical(version) != version {
		return fmt.Errorf("%q is not a version such as v1.2.3", version)
	}
	when, err := commitTime()
	if err != nil {
		return err
	}
	requirements, err := git("show", "HEAD:go.mod")
	if err != nil {
		return err
	}
	info, err := json.Marshal(map[string]any{"Version": version, "Time": when})
	if err != nil {
		return err
	}
	dir := filepath.Join(proxy, filepath.FromSlash(path), "@v")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for name, text := range map[string][]byte{"list": []byte(version + "\n"), version + ".info": info,
		version + ".mod": []byte(requirements + "\n")} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
			return err
		}
	}
	return archive(version, filepath.Join(dir, version+".zip"))
}

// committedVersion returns the version of the checked-out commit, with v, from its constant.
func committedVersion() (string, error) {
	source, err := git("show", "HEAD:runs/buildinfo.go")
	if err != nil {
		return "", err
	}
	found := regexp.MustCompile(`(?m)^const Version = "(.+)"$`).FindStringSubmatch(source)
	if found == nil {
		return "", errors.New("runs/buildinfo.go has no constant Version")
	}
	return "v" + found[1], nil
}

// commitTime returns the time of the checked-out commit, which is that of all files in archives.
func commitTime() (time.Time, error) {
	text, err := git("log", "-1", "--format=%cI")
	if err != nil {
		return time.Time{}, err
	}
	return time.Parse(time.RFC3339, text)
}

// tagged returns an error unless the checked-out commit has the tag of the version, because users
// expect the released module to be that of the tag.
func tagged(version string) error {
	tags, err := git("tag", "--points-at", "HEAD")
	if err != nil {
		return err
	}
	if !slices.Contains(strings.Fields(tags), version) {
		return fmt.Errorf("the checked-out commit has no tag %s: run git tag %s, or check out the tag", version, version)
	}
	return nil
}

// archive packs the commit as Go packs modules. It packs a clone, which contains only committed files
// and exists for every kind of checkout.
func archive(version, file string) error {
	top, err := git("rev-parse", "--show-toplevel")
	if err != nil {
		return err
	}
	clone, err := os.MkdirTemp("", "miplc-release")
	if err != nil {
		return err
	}
	defer os.RemoveAll(clone)
	if _, err := git("clone", "--quiet", "--no-hardlinks", top, clone); err != nil {
		return err
	}
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	return errors.Join(zip.CreateFromVCS(f, module.Version{Path: path, Version: version}, clone, "HEAD", ""), f.Close())
}

func git(args ...string) (string, error) {
	out, err := exec.Command("git", args...).Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w", strings.Join(args, " "), err)
	}
	return strings.TrimSpace(string(out)), nil
}
