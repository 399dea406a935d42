// Tests of the labels that a file has, without settings of the user.

package bagfile

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestDetectLabels(t *testing.T) {
	for _, test := range []struct {
		name, text string
		reading    Reading
		want       string // known, candidates or none; otherwise a part of the error
	}{
		{"known", "bag,label,f\na,u,1\nb,v,2\n", Reading{}, "known"},
		{"candidates", "bag,label,candidates,f\na,u,u v,1\nb,v,v,2\n", Reading{}, "candidates"},
		{"only candidates", "bag,candidates,f\na,u v,1\nb,v,2\n", Reading{}, "candidates"},
		{"no column", "bag,f\na,1\nb,2\n", Reading{}, "none"},
		{"unknown", "# classes: u v\nbag,label,f\na,,1\nb,,2\n", Reading{}, "none"},
		{"one unknown", "bag,label,f\na,u,1\nb,,2\nc,v,3\n", Reading{}, "has no label, and there are no candidates"},
		{"another column", "bag,label,f\na,u,1\nb,v,2\n", Reading{Columns: Columns{Roles: Roles{Label: "species"}}},
			`no column "species"`},
		{"only features", "bag,label,row,f,g\na,u,1,2,3\nb,v,2,2,3\n",
			Reading{Columns: Columns{Features: []string{"g", "row"}, OnlyFeatures: true}}, "known"},
		{"classes", "bag,label,f\na,u,1\nb,v,2\n", Reading{Columns: Columns{Classes: []string{"v", "w"}}},
			"is not a class of the given list"},
		{"ignored", "bag,label,patient,f\na,u,1,2\nb,v,2,2\n", Reading{}, "named like an identifier"},
	} {
		t.Run(test.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "bags.csv")
			if err := os.WriteFile(path, []byte(test.text), 0o600); err != nil {
				t.Fatal(err)
			}
			test.reading.DetectLabels, test.reading.Form = true, PythonForm
			d, err := OpenWith(path, test.reading)
			if err != nil {
				if !strings.Contains(err.Error(), test.want) {
					t.Errorf("error %q, want %q", err, test.want)
				}
				return
			}
			got := "candidates"
			if d.Classes == 0 {
				got = "none"
			} else if d.Known {
				got = "known"
			}
			if got != test.want {
				t.Errorf("labels are %s, want %s", got, test.want)
			}
		})
	}
}
