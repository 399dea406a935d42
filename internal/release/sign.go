// The signature of a release.

package main

import (
	_ "embed"
	"fmt"
	"os"
	"os/exec"
)

//go:embed Dockerfile
var dockerfile []byte

// sign writes SHA256SUMS.sig with the SSH key that MIPLC_SIGNING_KEY names, as ssh-keygen -Y verify reads it. The
// file SHA256SUMS contains the sums of everything else. Without a key there is no signature.
func sign(sums string) error {
	key := os.Getenv("MIPLC_SIGNING_KEY")
	if key == "" {
		fmt.Println("not signed: MIPLC_SIGNING_KEY names no SSH key")
		return nil
	}
	out, err := exec.Command("ssh-keygen", "-Y", "sign", "-n", "miplc-release", "-f", key, sums).CombinedOutput()
	if err != nil {
		return fmt.Errorf("ssh-keygen: %w\n%s", err, out)
	}
	return nil
}
