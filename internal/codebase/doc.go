// Package codebase contains the tests of the whole repository: that the map in
// docs/architecture.md is the one the imports draw, and that what packages
// export is used.
package codebase
