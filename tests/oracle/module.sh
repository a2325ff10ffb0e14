# Functions of build and build-servers: a Go module of its own over one Kubernetes release.

# work VERSION: the folder for everything of that release.
work() { echo "${ORACLE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/oracle}/$1"; }

# module FOLDER VERSION: a go.mod that requires the release, and its staging modules at v0.Y.Z instead of ./staging.
module() {
  [ -f "$1/go.mod" ] && return
  mkdir -p "$1"
  local source
  source=$(cd "$1" && go mod download -json "k8s.io/kubernetes@v$2" | sed -n 's/^\t"GoMod": "\(.*\)",\{0,1\}$/\1/p')
  [ -f "$source" ] || { echo "no k8s.io/kubernetes v$2" >&2; return 1; }
  { echo "module oracle"; echo; grep '^go ' "$source"; echo; echo "require k8s.io/kubernetes v$2"; echo; echo "replace ("
    awk -v v="v0.${2#1.}" '$2 == "=>" && $3 ~ /^\.\/staging\// { print "\t" $1 " => " $1 " " v }' "$source"
    echo ")"; } >"$1/go.mod.new"
  mv "$1/go.mod.new" "$1/go.mod"
}

# compile FOLDER OUT LDFLAGS: tidies the module and builds its program; the output of Go is printed only on failure.
compile() {
  (cd "$1" && { go mod tidy >tidy.log 2>&1 || { cat tidy.log >&2; exit 1; }; } && go build -p "${P:-2}" -ldflags "$3" -o "$2" .)
  echo "$2"
}
