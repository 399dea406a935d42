package bagfile

import (
	"archive/zip"
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// The files of a table have coordinates next to the features. If a bag has none, the others keep theirs.
func TestCoordsOfTables(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, arrays map[string][]byte) {
		var b bytes.Buffer
		z := zip.NewWriter(&b)
		for array, content := range arrays {
			w, err := z.CreateHeader(&zip.FileHeader{Name: array + ".npy", Method: zip.Store})
			if err == nil {
				_, err = w.Write(content)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		z.Close()
		if err := os.WriteFile(filepath.Join(dir, name), b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("1.npz", map[string][]byte{"features": npyBytes(bagValues(0, 2, 3), 2, 3), "coords": npyBytes([]float32{1, 2, 3, 4}, 2, 2)})
	write("2.npz", map[string][]byte{"features": npyBytes(bagValues(1, 1, 3), 1, 3), "coords": npyBytes([]float32{5, 6}, 1, 2)})
	write("3.npz", map[string][]byte{"features": npyBytes(bagValues(1, 1, 3), 1, 3), "coords": npyBytes([]float32{5, 6, 7}, 1, 3)})
	for second, want := range map[string][]float32{"2.npz": {1, 2, 3, 4, 5, 6}, "3.npz": nil} {
		path := filepath.Join(dir, "table.csv")
		table := "bag,label,candidates,file\na,no,no yes,1.npz\nb,yes,no yes," + second + "\n"
		if err := os.WriteFile(path, []byte(table), 0o644); err != nil {
			t.Fatal(err)
		}
		d, err := Open(path)
		if err != nil || !slices.Equal(d.Coords, want) || !slices.Equal(d.CoordsOf(0), []float32{1, 2, 3, 4}) || want == nil && d.CoordsOf(1) != nil || want != nil && !slices.Equal(d.CoordsOf(1), want[4:]) {
			t.Errorf("%s: %v, %v", second, d, err)
		}
	}
}
