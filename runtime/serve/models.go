// The models that are served: found at a path, opened in their versions, and replaced when files change.

package serve

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/miplc/miplc/internal/fileio"
	"github.com/miplc/miplc/internal/onnxpb"
	"github.com/miplc/miplc/internal/resources"
	"github.com/miplc/miplc/runtime"
)

const modelFileName = "model.onnx"

// modelFile is the file of a version of a model.
type modelFile struct {
	name, path string
	version    int
}

// scan finds the models at a path: a model file; a folder that contains model.onnx, e.g. that of a
// run; or a folder of models, each as NAME.onnx, NAME/model.onnx or, with versions,
// NAME/1/model.onnx, which is also the layout of other servers' repositories.
func scan(root string) ([]modelFile, error) {
	info, err := os.Stat(root)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("there is no model file, run or folder of models %s", root)
	}
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return []modelFile{{name: nameOf(root), path: root, version: 1}}, nil
	}
	if file := filepath.Join(root, modelFileName); exists(file) {
		return []modelFile{{name: nameOf(file), path: file, version: 1}}, nil
	}
	found, err := scanFolder(root)
	if err == nil && len(found) == 0 {
		err = fmt.Errorf("%s contains no model: give a model file, "+
			"or a folder with %s, NAME.onnx, NAME/%s or NAME/VERSION/%s",
			root, modelFileName, modelFileName, modelFileName)
	}
	return found, err
}

func scanFolder(root string) (found []modelFile, err error) {
	entries, err := os.ReadDir(root)
	if err != nil {
		return nil, err
	}
	seen := map[string]string{}
	for _, e := range entries {
		path := filepath.Join(root, e.Name())
		var here []modelFile
		switch name, isModel := strings.CutSuffix(e.Name(), ".onnx"); {
		case strings.HasPrefix(e.Name(), "."):
		case isModel:
			here = []modelFile{{name: name, path: path, version: 1}}
		case exists(filepath.Join(path, modelFileName)):
			here = []modelFile{{name: e.Name(), path: filepath.Join(path, modelFileName), version: 1}}
		default:
			here = scanVersions(path)
		}
		for _, p := range here {
			if first := seen[p.name]; first != "" && first != path {
				return nil, fmt.Errorf("%s and %s are both the model %s: rename one", first, path, p.name)
			}
			seen[p.name] = path
		}
		found = append(found, here...)
	}
	return found, nil
}

// scanVersions finds NUMBER/model.onnx in a folder. It ignores other files, and numbers in another
// form such as 01, which could name the same version twice.
func scanVersions(folder string) (found []modelFile) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil // not a folder, or not readable
	}
	for _, e := range entries {
		file := filepath.Join(folder, e.Name(), modelFileName)
		if v, _ := strconv.Atoi(e.Name()); v > 0 && strconv.Itoa(v) == e.Name() && exists(file) {
			found = append(found, modelFile{name: filepath.Base(folder), path: file, version: v})
		}
	}
	return found
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// nameOf returns the name of the model in a file: the name of the file, or of its folder if the
// file is model.onnx.
func nameOf(file string) string {
	if filepath.Base(file) != modelFileName {
		return strings.TrimSuffix(filepath.Base(file), ".onnx")
	}
	if abs, err := filepath.Abs(file); err == nil && filepath.Dir(abs) != "/" {
		return filepath.Base(filepath.Dir(abs))
	}
	return "model"
}

// openVersion is one version of a model, opened.
type openVersion struct {
	modelFile
	seen   string // identity of its file if it is reliable; "": compare the hash
	sha256 string // of its file
	info   runtime.Info
	// sentences about weaknesses that training found; nil if the folder of the file has no summary of it
	findings []string
	queue    *queue
	inUse    sync.RWMutex // read-locked by each request
}

// close waits for the requests in progress and frees the version.
func (v *openVersion) close() {
	v.inUse.Lock()
	defer v.inUse.Unlock()
	v.queue.close()
}

func (v *openVersion) versionText() string { return strconv.Itoa(v.version) }

// models are the models at one path by name and version.
type models struct {
	root     string
	open     func(path string) (*runtime.Model, error)
	batching Batching
	memory   *memoryPool
	metrics  *metrics
	log      *slog.Logger

	reloading sync.Mutex
	rejected  map[string]rejection // by path
	scanError string               // of the last scan
	mu        sync.RWMutex
	loaded    map[string][]*openVersion // by name; versions ascending
}

// rejection is why a file is not served.
type rejection struct {
	seen   string // identity of the file as in openVersion
	reason string // the hash of the file, or why it has none; empty: it is not rejected
}

// reload opens new and changed models at the path and closes models whose files are gone. It
// reports a file that cannot be opened, or that would change what requests depend on, once until
// the file changes; the loaded version stays in use. Requests in flight finish with their version.
// It returns how many versions were added, changed or removed.
func (m *models) reload() (changed int, err error) {
	m.reloading.Lock()
	defer m.reloading.Unlock()
	files, err := scan(m.root)
	if err != nil {
		if err.Error() == m.scanError {
			return 0, nil
		}
		m.scanError = err.Error()
		return 0, err
	}
	m.scanError = ""
	next := map[string][]*openVersion{}
	rejected := map[string]rejection{}
	var errs []error
	for _, p := range files {
		old := m.find(p.name, p.version)
		v, no, err := m.openIfChanged(p, old)
		if no.reason != "" {
			rejected[p.path] = no
			v = old
		}
		if err != nil {
			errs = append(errs, err)
			m.log.Error("model not loaded", "model", p.name, "version", p.version, "path", p.path, "kept", old != nil,
				"error", err)
		}
		if v != nil {
			next[p.name] = append(next[p.name], v)
		}
		if v != nil && v != old {
			changed++
			m.log.Info("model loaded", "model", v.name, "version", v.version, "path", v.path, "sha256", v.sha256,
				"replaced", old != nil)
		}
	}
	m.rejected = rejected
	for _, versions := range next {
		slices.SortFunc(versions, func(a, b *openVersion) int { return cmp.Compare(a.version, b.version) })
	}
	for _, v := range m.swap(next) {
		if m.find(v.name, v.version) == nil {
			changed++
			m.log.Info("model removed", "model", v.name, "version", v.version, "path", v.path, "sha256", v.sha256)
		}
		v.close()
	}
	return changed, errors.Join(errs...)
}

// clockResolution is how recently a file may have changed without a new change time, because file systems have
// coarse clocks.
const clockResolution = 2 * time.Second

// openIfChanged opens the version in a file, or returns the old one if the file is unchanged. If it is
// rejected, err is nil if it was rejected before for the same reason. The contents of an unchanged file are not read
// again, and those of a file that is too large are not read at all.
func (m *models) openIfChanged(p modelFile, old *openVersion) (v *openVersion, no rejection, err error) {
	before := m.rejected[p.path]
	reject := func(seen, reason string, err error) (*openVersion, rejection, error) {
		if before.reason == reason {
			err = nil
		}
		return nil, rejection{seen, reason}, err
	}
	if p.name == "" || !utf8.ValidString(p.name) {
		return reject("", "name",
			fmt.Errorf("%q gives the model the name %q, which is not text in UTF-8: rename it", p.path, p.name))
	}
	now := time.Now()
	info, err := os.Stat(p.path)
	if err != nil {
		return reject("", err.Error(), err)
	}
	seen, at, ok := fileio.State(info)
	if !ok || now.Sub(at) < clockResolution {
		seen = ""
	}
	switch {
	case old != nil && old.path == p.path && seen != "" && seen == old.seen:
		return old, rejection{}, nil
	case before.reason != "" && seen != "" && seen == before.seen:
		return nil, before, nil
	case info.Mode().IsRegular() && info.Size() > onnxpb.MaxFile:
		return reject(seen, "size", fmt.Errorf("%s: %w: %d bytes, limit %d", p.path, onnxpb.ErrTooLarge, info.Size(),
			onnxpb.MaxFile))
	}
	hash, err := fileio.SHA256(p.path)
	if err != nil {
		return reject("", err.Error(), err)
	}
	if old != nil && hash == old.sha256 {
		old.path, old.seen = p.path, seen // requests read name and version concurrently; these do not change
		return old, rejection{}, nil
	}
	if before.reason == hash {
		return nil, rejection{seen, hash}, nil
	}
	err = resources.Try(func() (err error) { v, err = m.load(p, hash, old); return err })
	if err != nil {
		return nil, rejection{seen, hash}, err
	}
	v.seen = seen
	return v, rejection{}, nil
}

// load opens a file with a known hash, to replace old unless that is nil.
func (m *models) load(p modelFile, hash string, old *openVersion) (*openVersion, error) {
	model, err := m.open(p.path)
	if err != nil {
		return nil, err
	}
	again, err := fileio.SHA256(p.path)
	if err == nil && again != hash {
		err = fmt.Errorf("%s changed while it was read; write a new model to another file and rename that file", p.path)
	}
	if err == nil && old != nil {
		if err = replaceable(old.info, model.Info()); err != nil {
			err = fmt.Errorf("%s: %w: requests to version %d rely on that; add the model as a new version", p.path, err,
				p.version)
		}
	}
	if err != nil {
		_ = model.Close() // the error could only be ignored
		return nil, err
	}
	return &openVersion{modelFile: p, sha256: hash, info: model.Info(), findings: findingsOf(p.path, hash),
		queue: newQueue(p.name, model, m.batching, m.memory, m.metrics)}, nil
}

// findingsOf returns the findings of a model as sentences. They are in summary.json, in the folder of the model file.
// It returns nil if there is no summary, or if the summary describes another file.
func findingsOf(path, hash string) (texts []string) {
	var summary struct {
		ModelSHA256 string `json:"model_sha256"`
		Findings    []struct{ Text, Advice string }
	}
	text, err := fileio.ReadAtMost(filepath.Join(filepath.Dir(path), "summary.json"), maxSummary, "a summary")
	if err != nil || json.Unmarshal(text, &summary) != nil || summary.ModelSHA256 != hash {
		return nil
	}
	for _, f := range summary.Findings {
		if f.Advice != "" {
			f.Text += ": " + f.Advice
		}
		texts = append(texts, f.Text)
	}
	return texts
}

// maxSummary is the largest summary.json in bytes that is read.
const maxSummary = 4 << 20

// replaceable rejects a model that would change the form of requests or answers: another signature,
// input shape, order of features or list of classes.
func replaceable(old, by runtime.Info) error {
	if old.Contract != by.Contract {
		return fmt.Errorf("it has the signature %s, the model in use %s", by.Contract, old.Contract)
	}
	return old.CheckReplacement(by)
}

// swap installs the next versions and returns the versions that are no longer in use.
func (m *models) swap(next map[string][]*openVersion) (gone []*openVersion) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for name, versions := range m.loaded {
		for _, v := range versions {
			if !slices.Contains(next[name], v) {
				gone = append(gone, v)
			}
		}
	}
	m.loaded = next
	m.metrics.models.Reset()
	for name, versions := range next {
		for _, v := range versions {
			m.metrics.models.WithLabelValues(name, v.versionText()).Set(1)
		}
	}
	return gone
}

func (m *models) find(name string, number int) *openVersion {
	m.mu.RLock()
	defer m.mu.RUnlock()
	for _, v := range m.loaded[name] {
		if v.version == number {
			return v
		}
	}
	return nil
}

// use returns a version for a request, which must call done when it has ended. Version "" is the
// newest; name "" is the only model.
func (m *models) use(name, version string) (v *openVersion, done func(), err error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if name == "" && len(m.loaded) == 1 {
		name = m.sortedNames()[0]
	}
	versions := m.loaded[name]
	switch {
	case name == "":
		return nil, nil, invalid("several models are served: name one of %s", strings.Join(m.sortedNames(), ", "))
	case len(versions) == 0:
		return nil, nil, status.Errorf(codes.NotFound, "there is no model %.100q; the server has %s", name,
			strings.Join(m.sortedNames(), ", "))
	case version == "":
		v = versions[len(versions)-1]
	default:
		at := slices.IndexFunc(versions, func(v *openVersion) bool { return v.versionText() == version })
		if at < 0 {
			return nil, nil, status.Errorf(codes.NotFound, "model %.100q has no version %.100q; it has %s", name,
				version, strings.Join(numbers(versions), ", "))
		}
		v = versions[at]
	}
	v.inUse.RLock()
	return v, v.inUse.RUnlock, nil
}

// infos returns the metadata of all versions of a model, or of all models if the name is empty.
func (m *models) infos(name string) (all []*runtime.Info) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	for other, versions := range m.loaded {
		for _, v := range versions {
			if name == "" || name == other {
				all = append(all, &v.info)
			}
		}
	}
	return all
}

// sortedNames must be called with the lock held.
func (m *models) sortedNames() []string { return slices.Sorted(maps.Keys(m.loaded)) }

// versions returns the numbers of the versions of a model.
func (m *models) versions(name string) []string {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return numbers(m.loaded[name])
}

func numbers(versions []*openVersion) []string {
	all := make([]string, len(versions))
	for i, v := range versions {
		all[i] = v.versionText()
	}
	return all
}

// names returns the names of the models, sorted.
func (m *models) names() []string {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.sortedNames()
}

// close waits for the requests in progress and frees the models.
func (m *models) close() {
	for _, v := range m.swap(nil) {
		v.close()
	}
}
