// Bad SVG is found.

package testsupport

import "testing"

func TestCheckSVG(t *testing.T) {
	whole := func(body string) []byte {
		return []byte(`<?xml version="1.0"?><svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 10 10">` + body + `</svg>`)
	}
	for _, good := range []string{
		``, `<path d="M1,2L3.5,-4e-1Z" style="fill:#00AAff;stroke:none"/>`, `<g transform="scale(1, -1) translate(0, -10)"/>`,
		`<text x="1" style="font-family:'Liberation Sans',Arial;font-size:11px">NaN of names</text>`,
	} {
		if err := CheckSVG(whole(good)); err != nil {
			t.Errorf("%s: %v", good, err)
		}
	}
	for _, bad := range []string{
		`<path d="M1,2L3,4" style="fill:#-8000000000000000-8000000000000000-8000000000000000"/>`, `<path d="M1,NaN"/>`,
		`<rect x="+Inf" y="1"/>`, `<rect width=""/>`, `<rect x="1e999"/>`, `<g>`, `<rect fill="blu"/>`,
		`<image href="data:image/png;base64,AAAA"/>`,
		`<image href="https://example.org/a.png"/>`, `<b xmlns="other"/>`, `<g transform="translate(NaN, 1)"/>`,
	} {
		if err := CheckSVG(whole(bad)); err == nil {
			t.Errorf("no error for %s", bad)
		}
	}
	for _, bad := range []string{``, `<svg/>`, `<svg xmlns="http://www.w3.org/2000/svg"/>`,
		`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 0 1"/>`} {
		if err := CheckSVG([]byte(bad)); err == nil {
			t.Errorf("no error for %s", bad)
		}
	}
}
