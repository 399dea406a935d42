#!/bin/sh
# Makes the stand-ins for the onnxruntime library that the tests inspect: each
# has headers and symbols like the real one and no code worth running. Needs
# gcc for linux/amd64. usage: sh make_libraries.sh
set -eu
cd "$(dirname "$0")"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

library() { # output symbol version
	echo "void *$2(void) { return 0; }" >"$work/lib.c"
	flags="-shared -fPIC -nostdlib -O1 -s -Wl,--build-id=none -Wl,-z,noseparate-code -Wl,-z,max-page-size=64 -Wl,--hash-style=gnu"
	if [ -n "$3" ]; then
		echo "$3 { global: $2; local: *; };" >"$work/lib.map"
		flags="$flags -Wl,--version-script=$work/lib.map"
	fi
	gcc $flags -o "$1" "$work/lib.c"
	objcopy --remove-section=.comment --remove-section=.note.gnu.property "$1"
}

library new.so OrtGetApiBase VERS_1.27.0
library old.so OrtGetApiBase VERS_1.20.1
library unversioned.so OrtGetApiBase ""
library other.so some_function VERS_1.27.0
ls -l -- *.so
