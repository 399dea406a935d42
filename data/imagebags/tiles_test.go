// Tiles with their coordinates.

package imagebags

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/miplc/miplc/data"
	"github.com/miplc/miplc/data/bagfile"
)

var bagFolders = map[string][]byte{"cat/1/b.png": nil, "cat/1/a.jpg": nil, "cat/2/a.png": nil, "dog/1/a.tif": nil}

// A folder, its archive and a table of the same images are the same dataset, except for candidates.
func TestOpenTiles(t *testing.T) {
	dir := tree(t, bagFolders)
	table := "bag,label,candidates,file\ncat/1,cat,cat,cat/1\ncat/2,cat,cat,cat/2/a.png\ndog/1,dog,dog,dog/1\n"
	tablePath := filepath.Join(dir, "bags.csv")
	if err := os.WriteFile(tablePath, []byte(table), 0o644); err != nil {
		t.Fatal(err)
	}
	severalFiles := strings.Replace(tablePath, "bags.csv", "files.csv", 1)
	if err := os.WriteFile(severalFiles, []byte(strings.Replace(table, "cat/1,cat,cat,cat/1\n",
		"cat/1,cat,cat,cat/1/a.jpg\ncat/1,,,cat/1/b.png\n", 1)), 0o644); err != nil {
		t.Fatal(err)
	}
	hash := ""
	for _, path := range []string{dir, zipped(t, tree(t, bagFolders)), tablePath, severalFiles} {
		d, err := OpenTiles([]string{path}, TileForm{Side: 8}, bagfile.Reading{})
		if err != nil {
			t.Fatal(err)
		}
		if err := d.Validate(path); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(d.Shape, []int{3, 8, 8}) || !slices.Equal(d.Offsets, []int{0, 2, 3, 4}) ||
			!slices.Equal(d.BagNames, []string{"cat/1", "cat/2", "dog/1"}) || !slices.Equal(d.Labels, []int{0, 0, 1}) {
			t.Errorf("%s: %v %v %q %v", path, d.Shape, d.Offsets, d.BagNames, d.Labels)
		}
		if hash == "" {
			hash = d.Hash()
		}
		if d.Hash() != hash {
			t.Errorf("the hash of %s differs", path)
		}
		x, err := d.Bag(0)
		if err != nil || len(x) != 2*3*64 || slices.Min(x) < 0 || slices.Max(x) > 1 || slices.Max(x) < 0.3 {
			t.Errorf("%s: %d values of %v to %v, %v", path, len(x), slices.Min(x), slices.Max(x), err)
		}
		if half, err := d.Select([]int{2, 0}); err != nil || half.Hash() == hash {
			t.Errorf("%s: selected bags %v, %v", path, half, err)
		} else if y, err := half.Bag(1); err != nil || !slices.Equal(x, y) {
			t.Errorf("%s: the bag differs after selection: %v", path, err)
		}
	}
}

// The pixels of a dataset of patches can be opened as tiles as well.
func TestTilesOfPatches(t *testing.T) {
	d := &data.Dataset{Shape: []int{3, 2, 2}, Instances: make([]float32, 24), Offsets: []int{0, 1, 2}, Classes: 2,
		Candidates: []uint8{1, 0, 0, 1}}
	d.Instances[13] = 0.5
	path := filepath.Join(t.TempDir(), "patches.npz")
	if err := bagfile.Save(path, d); err != nil {
		t.Fatal(err)
	}
	tiles, err := OpenTiles([]string{path}, TileForm{Side: 2}, bagfile.Reading{})
	if err != nil {
		t.Fatal(err)
	}
	store := tiles.Store.(*Tiles)
	if x, err := tiles.Bag(1); err != nil || x[1] != 0.5 || store.Sum(0, 0) == store.Sum(1, 0) {
		t.Errorf("%v, %v", x, err)
	}
	if _, err := OpenTiles([]string{path}, TileForm{Side: 3}, bagfile.Reading{}); err == nil ||
		!strings.Contains(err.Error(), "the shape [3 2 2]; the encoder needs images [3 3 3]") {
		t.Errorf("another size: %v", err)
	}
}

func TestBadTiles(t *testing.T) {
	write := func(dir, name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	dir := tree(t, bagFolders)
	for _, c := range []struct{ path, want string }{
		{filepath.Join(dir, "cat"), "the bags have no labels"},
		{tree(t, map[string][]byte{"cat/1/a.png": nil, "dog/a.png": nil}),
			"the bags cat/1 and dog are not at the same depth"},
		{tree(t, map[string][]byte{"cat/1/a.png": nil}), "at least 2 are needed"},
		{filepath.Join(dir, "none"), "there is no such file"},
		{write(dir, "missing.csv", "bag,label,candidates,file\n1,cat,cat dog,cat/9\n"),
			"cat/9: there is no such folder or file"},
		{write(dir, "features.csv", "bag,label,candidates,f1\n1,cat,cat dog,1\n"), `the table has no column "file"`},
	} {
		if _, err := OpenTiles([]string{c.path}, TileForm{Side: 8}, bagfile.Reading{}); err == nil ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.path, err, c.want)
		}
	}
	if d, err := OpenTiles([]string{filepath.Join(dir, "cat")}, TileForm{Side: 8},
		bagfile.Reading{Columns: bagfile.Columns{ModelClasses: []string{"dog", "cat"}}}); err != nil || d.Labels[0] != -1 ||
		d.Candidates[0]+d.Candidates[1] != 2 {
		t.Errorf("bags of known classes: %+v, %v", d, err)
	}
	changing := tree(t, bagFolders)
	if d, err := OpenTiles([]string{changing}, TileForm{Side: 8},
		bagfile.Reading{Columns: bagfile.Columns{ModelClasses: []string{"bird", "cat", "dog"}}}); err != nil ||
		d.Classes != 3 {
		t.Errorf("folders of some classes of a model: %v", err)
	}
	d, err := OpenTiles([]string{changing}, TileForm{Side: 8}, bagfile.Reading{})
	if err != nil {
		t.Fatal(err)
	}
	write(changing, "cat/1/a.jpg", "other")
	if _, err := d.Bag(0); err == nil || !strings.Contains(err.Error(),
		"a.jpg: the file has changed since the dataset was opened") {
		t.Errorf("a changed file: %v", err)
	}
	write(changing, "cat/1/a.jpg", "other")
	if broken, err := OpenTiles([]string{changing}, TileForm{Side: 8}, bagfile.Reading{}); err != nil {
		t.Error(err)
	} else if _, err := broken.Bag(0); err == nil || !strings.Contains(err.Error(), "not a JPEG, PNG or TIFF image") {
		t.Errorf("a broken image: %v", err)
	}
}
