// Package codebase contains tests of the whole repository: the map in docs/architecture.md, the
// links in documents, the exported names of package runtime, and how goroutines are started.
package codebase
