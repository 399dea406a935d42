// Limits of groups.

package resources

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// The limits of all control groups up to the root count, in both versions. Cached files do not count
// as used memory.
func TestGroups(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("self", "0::/pod/app\n")
	write("old", "7:cpu,memory:/app\n6:pids:/app\n")
	write("pod/memory.max", "1000\n")
	write("pod/memory.current", "300\n")
	write("pod/memory.stat", "anon 1\ninactive_file 100\n")
	write("pod/app/memory.max", "max\n")
	write("pod/app/memory.current", "300\n")
	write("memory/app/memory.limit_in_bytes", "5000\n")
	write("memory/app/memory.usage_in_bytes", "5100\n")
	write("memory/memory.limit_in_bytes", "9223372036854771712\n")
	write("memory/memory.usage_in_bytes", "5100\n")
	for membership, want := range map[string][]float64{"self": {800}, "old": {0}, "none": nil} {
		var got []float64
		for _, r := range groups(filepath.Join(dir, membership), dir) {
			got = append(got, r.Bytes)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", membership, got, want)
		}
	}
	if len(system()) == 0 {
		t.Error("no memory limit was found on Linux")
	}
}
