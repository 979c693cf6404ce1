# Completion of feedd for bash. Options are read from its help at run time.

_feedd() {
  local word=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}
  COMPREPLY=()
  # Readline completes names of files, and quotes what it inserts.
  case $previous in
    --socket | --config | --check-config | --metrics-file) compopt -o default ;;
    --state) compopt -o dirnames ;;
    --durability) mapfile -t COMPREPLY < <(compgen -W "memory process disk" -- "$word") ;;
    --log-level) mapfile -t COMPREPLY < <(compgen -W "error warning notice info debug" -- "$word") ;;
    --socket-mode) mapfile -t COMPREPLY < <(compgen -W "0600 0660 0666" -- "$word") ;;
    --socket-group) mapfile -t COMPREPLY < <(compgen -g -- "$word") ;;
    --reload | --check-reload) mapfile -t COMPREPLY < <(compgen -W "$(pgrep -x feedd)" -- "$word") ;;
    *)
      local options
      options=$(feedd --help 2>/dev/null | grep -oE '^ +(-[A-Za-z], )?--[a-z-]+' | grep -oE -- '--[a-z-]+')
      mapfile -t COMPREPLY < <(compgen -W "$options" -- "$word")
      ;;
  esac
}

complete -F _feedd feedd
