# Shared by the shell scripts: --help and errors of the command line.
# Source it from the root of the package. The first comment of a script is its help.
script_name=scripts/$(basename "$0")

# Prints a path of the command line or the environment as an absolute one. The scripts run in the root of the package; OLDPWD is
# the directory that they were called in.
from_caller() {
  case $1 in
    /*) printf '%s\n' "$1" ;;
    *) printf '%s\n' "$OLDPWD/$1" ;;
  esac
}

if [ -n "${FEEDD_BIN_DIR:-}" ]; then FEEDD_BIN_DIR=$(from_caller "$FEEDD_BIN_DIR"); fi

# Prints the help of the script.
print_help() {
  sed -n '2,${/^#/!q;s/^# \{0,1\}//;p}' "$script_name"
}

# Reports an error of the command line and exits with 2.
usage_error() {
  printf '%s: %s; run %s --help\n' "$script_name" "$*" "$script_name" >&2
  exit 2
}

# Reports a failure and exits with 1.
fail() {
  printf '%s: %s\n' "$script_name" "$*" >&2
  exit 1
}

# Reports an unknown option or argument.
unknown_argument() {
  case $1 in
    -*) usage_error "unknown option '$1'" ;;
    *) usage_error "unexpected argument '$1'" ;;
  esac
}

# Parses the arguments of a script whose only option is --help.
accept_only_help() {
  [ $# -eq 0 ] && return
  case $1 in
    -h | --help)
      print_help
      exit
      ;;
    *) unknown_argument "$1" ;;
  esac
}
