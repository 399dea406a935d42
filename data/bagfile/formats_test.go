// Each format of the table has the functions that it promises.

package bagfile

import (
	"testing"

	"github.com/miplc/miplc/data/formats"
)

func TestCodecs(t *testing.T) {
	for _, f := range formats.Table {
		c := codecOf("a" + f.Ending)
		if f.Read != (c.read != nil) || f.Write != (c.write != nil) || f.OneBag != (c.open != nil) {
			t.Errorf("%+v: %+v", f, c)
		}
	}
}
