// Package codebase holds the tests of the code as a whole: that the map in
// docs/architecture.md is the one the imports draw, and that what packages
// export is used.
package codebase
