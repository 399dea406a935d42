// One rule of missing values for all roles and formats.

package bagfile

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestMissingValues(t *testing.T) {
	x, offsets, s := f4([]int{3, 2}, 1, 2, 3, 4, 5, 6), i8(keyOffsets, 0, 2, 3), u1([]int{2, 2}, 1, 1, 0, 1)
	names := func(key string, names ...string) npzEntry {
		width := 0
		for _, name := range names {
			width = max(width, len(name))
		}
		b := npyStart("|S"+string(rune('0'+width)), len(names))
		for _, name := range names {
			b = append(b, name+strings.Repeat("\x00", width-len(name))...)
		}
		return npzEntry{key, b}
	}
	for _, mark := range []string{"NA", "nan", "NaN", "None", "NULL", "<NA>", "#N/A", "N/A", "NaT"} {
		for role, file := range map[string][2]string{
			"label":         {"x.csv", "bag,label,candidates,patient,f1\na,NA,x y,p,1\nb,y,x y,q,2\n"},
			"candidate":     {"x.csv", "bag,label,candidates,patient,f1\na,,x NA,p,1\nb,y,x y,q,2\n"},
			"group":         {"x.csv", "bag,label,candidates,patient,f1\na,x,x y,NA,1\nb,y,x y,q,2\n"},
			"bag":           {"x.csv", "bag,label,candidates,patient,f1\nNA,x,x y,p,1\nb,y,x y,q,2\n"},
			"feature":       {"x.csv", "bag,label,candidates,patient,f1\na,x,x y,p,NA\nb,y,x y,q,2\n"},
			"file":          {"x.csv", "bag,label,candidates,patient,file\na,x,x y,p,NA\nb,y,x y,q,b.npy\n"},
			"groups of npz": {"x.npz", string(npzBytes(t, x, offsets, s, names(keyGroups, "p", mark)))},
			"bags of npz":   {"x.npz", string(npzBytes(t, x, offsets, s, names(keyBagNames, "p", mark)))},
		} {
			path := filepath.Join(t.TempDir(), file[0])
			content := file[1]
			if strings.HasSuffix(path, ".csv") {
				content = strings.Replace(content, "NA", mark, 1)
			}
			if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
				t.Fatal(err)
			}
			o := Reading{MaxBytes: 1 << 20}
			if strings.HasSuffix(path, ".csv") {
				o.Columns.Roles.Group = "patient"
			}
			want := "as programs write a missing value"
			switch role {
			case "feature":
				want = "feature 1 is " // not a number, or not finite
			case "file":
				want = "has no file"
			}
			if _, err := OpenWith(path, o); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s %q: %v", role, mark, err)
			}
		}
	}
}
