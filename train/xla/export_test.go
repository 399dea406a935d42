// What tests of other packages change.

package xla

// FeedBytes is feedBytes.
var FeedBytes = &feedBytes
