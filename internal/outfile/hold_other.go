//go:build !unix

package outfile

// hold does nothing, because on these systems a lock would also block writes of this process.
// Temporary files of killed processes stay until their folder is claimed again.
func hold(string) (release func()) { return func() {} }

func abandoned(string) bool { return false }
