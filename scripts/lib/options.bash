# Shared by the shell scripts: --help and the errors of a wrong command line.
# Source it from the root of the package. The help of a script is the comment at its top.
script_name=scripts/$(basename "$0")

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

# Refuses one argument that the script does not know.
unknown_argument() {
  case $1 in
    -*) usage_error "unknown option '$1'" ;;
    *) usage_error "unexpected argument '$1'" ;;
  esac
}

# For scripts whose only option is --help.
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
