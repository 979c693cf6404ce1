# Completion of feedclient for bash. Commands, options and feeds are asked from feedclient itself, so they are never stale.

_feedclient() {
  local word=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]} command="" position=0 index
  COMPREPLY=()

  # The command is the first word that is neither an option nor the value of one; feeds stand right behind it.
  for ((index = 1; index < COMP_CWORD; index++)); do
    case ${COMP_WORDS[index]} in
      --socket | --timeout) ((index++)) ;;
      -*) ;;
      *)
        if [ -z "$command" ]; then command=${COMP_WORDS[index]}; else ((position++)); fi
        ;;
    esac
  done

  case $previous in
    --socket | --since-file)
      mapfile -t COMPREPLY < <(compgen -f -- "$word")
      return
      ;;
    --timeout) return ;;
  esac

  local choices=""
  if [[ $word == -* ]]; then
    choices=$(feedclient ${command:+"$command"} --help 2>/dev/null | grep -oE '^ +(-[a-z], )?--[a-z-]+' | grep -oE -- '--[a-z-]+')
  elif [ -z "$command" ] || { [ "$command" = help ] && [ "$position" -eq 0 ]; }; then
    choices="help $(feedclient --help 2>/dev/null | sed -nE 's/^  ([a-z][A-Za-z]*)  +.*/\1/p')"
  elif [ "$position" -eq 0 ] && [ "$command" != call ]; then
    choices=$(feedclient --json --timeout 1s feeds 2>/dev/null | grep -oE '"feed":"[^"]*"' | cut -d '"' -f 4)
  elif [ "$position" -eq 0 ]; then
    choices=$(feedclient --json --timeout 1s call hello 2>/dev/null | grep -oE '"methods":\[[^]]*' | grep -oE '"[a-zA-Z]+"' | tr -d '"')
  fi
  mapfile -t COMPREPLY < <(compgen -W "$choices" -- "$word")
}

complete -F _feedclient feedclient
