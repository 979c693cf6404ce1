# Completion of feedclient for bash. Commands, options and feeds are read from feedclient at run time.

# Reads a word as the shell would, without expanding anything. Sets `plain` to its text and `open` to the quote that is not
# closed. With an open quote, readline replaces only the text after it.
_feedclient_unquote() {
  local word=$1 index character
  plain="" open=""
  for ((index = 0; index < ${#word}; index++)); do
    character=${word:index:1}
    if [[ $open == "'" || -n $open && $character == "$open" ]]; then
      if [[ $character == "$open" ]]; then open=""; else plain+=$character; fi
    elif [[ $character == \\ ]]; then
      ((index++))
      plain+=${word:index:1}
    elif [[ -z $open && $character == [\'\"] ]]; then
      open=$character
    else
      plain+=$character
    fi
  done
}

# Quotes a name so that it can follow an open quote, or stand alone without one.
_feedclient_quote() {
  local name=$1 quote="'"
  case $2 in
    "'") printf %s "${name//$quote/$quote\\$quote$quote}" ;;
    '"')
      name=${name//\\/\\\\}
      name=${name//\"/\\\"}
      name=${name//\$/\\\$}
      name=${name//\`/\\\`}
      # A backslash before an exclamation mark would stay.
      printf %s "${name//!/\"\'!\'\"}"
      ;;
    *) printf %q "$name" ;;
  esac
}

# Offers the lines of standard input that begin with the word. They are never expanded, because other programs choose the
# names of feeds. Characters that a shell would interpret are quoted.
_feedclient_offer() {
  local line plain open
  _feedclient_unquote "$1"
  # A quote that opens within the word: readline would insert the whole name after it.
  [[ -z $open || $1 == "$open"* ]] || return
  while IFS= read -r line; do
    [[ -n $line && $line == "$plain"* ]] || continue
    COMPREPLY+=("$(_feedclient_quote "$line" "$open")")
  done
}

# Lets readline complete the name of a file. It quotes what it inserts.
_feedclient_files() { compopt -o default 2>/dev/null; }

_feedclient_options() {
  feedclient ${1:+"$1"} --help 2>/dev/null | grep -oE '^ +(-[A-Za-z], )?--[a-z-]+' | grep -oE -- '--[a-z-]+'
}

_feedclient_commands() {
  echo help
  feedclient --help 2>/dev/null | sed -nE 's/^  ([a-z][A-Za-z-]*)  +.*/\1/p'
}

# Prints the names of feeds, and those of bins too for a command that reads.
_feedclient_feeds() {
  local bins='/'
  [[ $1 =~ ^(watch|trigger|get|range|query|snapshot|select|deselect|selected|verify|describe)$ ]] && bins='^$'
  feedclient --timeout 1s feeds --names 2>/dev/null | grep -v "$bins"
}

_feedclient_methods() {
  feedclient --json --timeout 1s call hello 2>/dev/null | grep -oE '"methods":\[[^]]*' | grep -oE '"[a-zA-Z]+"' | tr -d '"'
}

_feedclient_connections() {
  feedclient --json --timeout 1s clients 2>/dev/null | grep -oE '^\{"connection":[0-9]+' | cut -d : -f 2
}

_feedclient() {
  local word=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]} command="" position=0 index
  COMPREPLY=()

  # The command is the first word that is neither an option nor the value of an option. The feed follows it.
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
    --socket | --since-file | --state)
      _feedclient_files
      return
      ;;
    --kind)
      _feedclient_offer "$word" <<<$'collection\narray\nsingle\ncomposed\nsegmented\nslots\nview'
      return
      ;;
    --child | --of)
      _feedclient_offer "$word" < <(_feedclient_feeds watch)
      return
      ;;
    --timeout | --template | --print | --separator | --rows | --count | --interval | --where | --retries | --jobs) return ;;
  esac

  if [[ $word == -* ]]; then
    _feedclient_offer "$word" < <(_feedclient_options "$command")
  elif [ -z "$command" ] || { [ "$command" = help ] && [ "$position" -eq 0 ]; }; then
    _feedclient_offer "$word" < <(_feedclient_commands)
  elif [ "$command" = log-level ]; then
    _feedclient_offer "$word" <<<$'error\nwarning\nnotice\ninfo\ndebug'
  elif [ "$command" = kick ]; then
    _feedclient_offer "$word" < <(_feedclient_connections)
  elif [[ $command =~ ^(import|backup|restore)$ ]]; then
    _feedclient_files
  elif { [ "$position" -eq 0 ] || [[ $command =~ ^(export|watch)$ ]]; } && [ "$command" != call ]; then
    _feedclient_offer "$word" < <(_feedclient_feeds "$command")
  elif [ "$position" -eq 0 ]; then
    _feedclient_offer "$word" < <(_feedclient_methods)
  fi
}

complete -F _feedclient feedclient
