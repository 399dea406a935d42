#!/usr/bin/env bash
# Builds the images of miplc export --docker and export/worker/Dockerfile from the commit
# that is checked out, step by step with buildah, and runs them as Docker would: as their
# user, on a read-only root, with what else they say of themselves. No registry of images
# is needed: Debian and what the golang and python images add to it come from Debian's
# own packages, Go from this machine. Needs root, Linux, buildah, debootstrap, jq, curl and
# the network; a folder for the bases may be given, which stay there for the next time.
#
#   bash export/docker/check.sh [DIR]
set -euo pipefail
[ "$(id -u)" = 0 ] && [ "$(uname)" = Linux ] || { echo "NOT RUN: this needs root and Linux"; exit 77; }
for program in buildah debootstrap jq curl ip nsenter; do
  command -v "$program" >/dev/null || { echo "NOT RUN: $program is not installed"; exit 77; }
done
cd "$(dirname "$0")/../.."
repository=$PWD
folder=$(mktemp -d)
bases=$(realpath "${1:-$folder}")
storage=(--root "$folder/storage" --runroot "$folder/run" --storage-driver overlay)
running=
ended() {
  [ -z "$running" ] || kill "$running" 2>/dev/null || true
  buildah "${storage[@]}" rm --all >/dev/null || true
  rm -rf "$folder"
}
trap ended EXIT

# base NAME PACKAGES is a Debian with some packages.
base() {
  [ -e "$bases/$1" ] && return
  debootstrap --variant=minbase --include="$2" bookworm "$bases/$1.part" >"$folder/log" || { tail "$folder/log"; exit 1; }
  cp /etc/ssl/certs/ca-certificates.crt "$bases/$1.part/etc/ssl/certs/" # those that this machine trusts
  mv "$bases/$1.part" "$bases/$1"
}
base debian ca-certificates
base tools ca-certificates,gcc,g++,libc6-dev,git,python3-pip,python-is-python3

# image NAME BASE SETTINGS... makes an image of a base.
image() {
  local container
  container=$(buildah "${storage[@]}" from scratch)
  buildah "${storage[@]}" add --quiet "$container" "$bases/$2" / >/dev/null
  buildah "${storage[@]}" config "${@:3}" "$container"
  buildah "${storage[@]}" commit --quiet --rm "$container" "docker.io/library/$1" >/dev/null
}
modules=$(go env GOMODCACHE)/cache/download
image debian:bookworm-slim debian
image python:3.12-slim-bookworm tools --env PIP_CERT=/etc/ssl/certs/ca-certificates.crt
image golang:1.26.8-bookworm tools --env GOPATH=/go --env GOCACHE=/go-cache --env GOTOOLCHAIN=local --env GOSUMDB=off --env GOFLAGS=-buildvcs=false \
  --env PIP_CERT=/etc/ssl/certs/ca-certificates.crt \
  --env PATH=/go/bin:/usr/local/go/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
  --env "GOPROXY=file:///published,file:///modules,$(go env GOPROXY)"

version=v0.0.1-check
(cd release && go run . -module "$version" "$folder/release")
go build -o "$folder/miplc" ./cmd/miplc
"$folder/miplc" build quickstart -o "$folder/model" >"$folder/log"
"$folder/miplc" export "$folder/model" --docker "$folder/image" >"$folder/log"
# The bases above are made here, so they do not have the digests of the published ones.
sed 's/@sha256:[0-9a-f]*//' export/worker/Dockerfile >"$folder/worker.Dockerfile"
sed -i 's/@sha256:[0-9a-f]*//' "$folder"/image/*Dockerfile

# built NAME ARGUMENTS... builds an image. Go and what it has compiled are this machine's.
built() {
  buildah "${storage[@]}" bud --isolation chroot --format docker --pull-never --tag "$1" \
    --volume "$(go env GOROOT):/usr/local/go:ro" --volume "$(go env GOCACHE):/go-cache" \
    --volume "$modules:/modules:ro" --volume "$folder/release/proxy:/published:ro" "${@:2}" >"$folder/log" 2>&1 ||
    { tail -n 30 "$folder/log"; echo "$1: FAILED"; exit 1; }
}

# said IMAGE SETTING gives a setting of an image, the members of a list one a line.
said() { buildah "${storage[@]}" inspect --type image "$1" | jq -r '.Docker.config | '"$2"' | if type == "array" then .[] else . // empty end'; }

# start IMAGE ARGUMENTS... runs an image in separate network and process namespaces.
start() {
  local container root
  container=$(buildah "${storage[@]}" from --pull-never "$1")
  root=$(buildah "${storage[@]}" mount "$container")
  mapfile -t environment < <(said "$1" .Env)
  mapfile -t command < <(said "$1" .Entrypoint; said "$1" .Cmd)
  user=$(said "$1" .User)
  [ "$user" = 65532:65532 ] || { echo "$1: its user is $user"; exit 1; }
  du -sh "$root" | sed "s|/.*|$1|"
  # shellcheck disable=SC2016 # the inner shell expands them
  unshare --net --mount --ipc --uts bash -c '
    ip link set lo up
    mkdir -p "$1"/{dev,proc,tmp} # as Docker does
    mount --bind "$1" "$1" && mount --rbind /dev "$1/dev" && mount -o remount,ro,bind "$1" && mount -t tmpfs tmpfs "$1/tmp" && mount -t proc proc "$1/proc"
    exec env -i HOME=/ "${@:2}"' bash "$root" "${environment[@]}" "$(command -v chroot)" --userspec="$user" "$root" "${command[@]}" "${@:2}" >"$folder/served" 2>&1 &
  running=$!
}

# inside COMMAND... runs a command in the container, as its user.
inside() { nsenter --target "$running" --mount --net --ipc --uts --root --wd --setuid 65532 --setgid 65532 env -i "${environment[@]}" "$@"; }

# serves IMAGE PATH BODY waits till the image says that it is healthy, and asks it.
serves() {
  start "$1"
  mapfile -t health < <(said "$1" .Healthcheck.Test)
  for _ in $(seq 100); do
    kill -0 "$running" 2>/dev/null || break
    if inside "${health[@]:1}" 2>/dev/null; then break; fi
    sleep 0.2
  done
  inside "${health[@]:1}" || { cat "$folder/served"; echo "$1: not healthy"; exit 1; }
  [ "$(stat -c %u "/proc/$running")" = 65532 ] && grep -q /usr/local/lib/libonnxruntime.so "/proc/$running/maps" ||
    { echo "$1: not its user, or not its library"; exit 1; }
  nsenter --target "$running" --net curl --fail --silent --json "@$3" "http://127.0.0.1:8080$2" >"$folder/answer"
  kill -TERM "$running"
  wait "$running" || { cat "$folder/served"; echo "$1: SIGTERM ended it with $?"; exit 1; }
  running=
}

# A bag, and what this machine predicts.
jq -n '[range(5) as $i | [range(20) | ((. * 7 + $i * 3) % 11) / 5 - 1]]' >"$folder/rows"
jq '{instances: .}' "$folder/rows" >"$folder/bag"
jq -r '("bag,label,candidates," + ([range(20) | "f\(. + 1)"] | join(","))), (.[] | "a,1,1 2," + (map(tostring) | join(",")))' "$folder/rows" >"$folder/bag.csv"
"$folder/miplc" predict "$folder/model" "$folder/bag.csv" --json | jq '.bags[0].probabilities' >"$folder/want"

# agrees IMAGE FILTER compares what an image answered.
agrees() {
  jq "$2" "$folder/answer" | diff - "$folder/want" || { echo "$1: this machine predicts something else"; exit 1; }
  echo "$1: healthy, and predicts what this machine does"
}

built quickstart --build-arg "MIPLC=$version" "$folder/image"
serves quickstart /predict "$folder/bag"
agrees quickstart .probabilities

# examples/service, as service.Dockerfile takes a service of a user's.
mkdir -p "$folder/service/cmd/service"
cp examples/service/main.go "$folder/service/cmd/service"
(
  cd "$folder/service"
  go mod init example 2>"$folder/log"
  go mod edit -require "github.com/miplc/miplc@$version"
  GOFLAGS=-modcacherw GOMODCACHE=$folder/cache GOSUMDB=off GOPROXY="file://$folder/release/proxy,file://$modules,$(go env GOPROXY)" go mod tidy 2>"$folder/log" || { cat "$folder/log"; exit 1; }
)
built service --file "$folder/image/service.Dockerfile" --build-context "service=$folder/service" --build-arg PACKAGE=./cmd/service "$folder/image"
serves service /predict "$folder/rows"
agrees service .probabilities

built worker --file "$folder/worker.Dockerfile" "$repository"
start worker version
wait "$running" && running= && cat "$folder/served"
