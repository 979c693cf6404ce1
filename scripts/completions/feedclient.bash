# Completion of feedclient for bash. Commands, options and feeds are read from feedclient at run time.

# Reads a word as the shell would, without expanding anything. Sets `plain` to its text, `open` to the quote that is not
# closed, and `kept` to the text before the part that readline replaces: it breaks words behind = and :, and before @. With an open
# quote, it replaces only the text after that.
_feedclient_unquote() {
  local word=$1 index character
  plain="" open="" kept=""
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
      [[ $COMP_WORDBREAKS == *"$character"* && -z $open && $character == @ ]] && kept=$plain
      plain+=$character
      [[ $COMP_WORDBREAKS == *"$character"* && -z $open && $character == [=:] ]] && kept=$plain
    fi
  done
}

# Sets `words` to the words up to the completed one as the shell reads them: parts without a blank between them are one word.
_feedclient_words() {
  local rest=${COMP_LINE:-} before="" part index
  words=()
  for ((index = 0; index <= COMP_CWORD; index++)); do
    part=${COMP_WORDS[index]}
    if [[ $rest == [^[:blank:]]* && ($part == [=:@]* || $before == [=:@]*) ]]; then
      words[${#words[@]} - 1]+=$part
    else
      words+=("$part")
    fi
    rest=${rest#*"$part"}
    before=$part
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
  local line plain open kept
  _feedclient_unquote "$1"
  # A quote that opens within the word: readline would insert the whole name after it.
  [[ -z $open || $1 == "$open"* ]] || return
  while IFS= read -r line; do
    [[ -n $line && $line == "$plain"* ]] || continue
    COMPREPLY+=("$(_feedclient_quote "${line:${#kept}}" "$open")")
  done
}

# Runs feedclient with the socket of the command line.
_feedclient_ask() { feedclient ${socket:+--socket "$socket"} --timeout 1s "$@" 2>/dev/null; }

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
  _feedclient_ask feeds --names | grep -v "$bins"
}

_feedclient_methods() {
  _feedclient_ask --json call hello | grep -oE '"methods":\[[^]]*' | grep -oE '[[,]"[a-zA-Z]+"' | tr -d '[,"'
}

_feedclient_connections() {
  _feedclient_ask --json clients | grep -oE '^\{"connection":[0-9]+' | cut -d : -f 2
}

_feedclient_sockets() {
  local path
  for path in "${XDG_RUNTIME_DIR:-/nonexistent}/feedd.sock" /run/feedd/feedd.sock; do
    [[ -S $path ]] && printf '%s\n' "$path"
  done
}

# Offers sections, each with the comma before its row.
_feedclient_places() {
  _feedclient_offer "$1" < <(_feedclient_ask completion --sections "$feed" | sed 's/$/,/')
  compopt -o nospace 2>/dev/null
}

# Offers the values of an option. Returns whether it takes one.
_feedclient_value() {
  case $1 in
    --socket) _feedclient_offer "$word" < <(_feedclient_sockets) ;;
    --kind) _feedclient_offer "$word" <<<$'collection\narray\nsingle\ncomposed\nsegmented\nslots\nview' ;;
    --child | --of) _feedclient_offer "$word" < <(_feedclient_feeds watch) ;;
    --id | --before | --after)
      [ "$command" = move ] && _feedclient_offer "$word" < <(_feedclient_ask completion --ids "$feed")
      [ "$command" = insertChild ] && _feedclient_offer "$word" < <(_feedclient_feeds watch)
      ;;
    --at) [ "$command" = get ] && _feedclient_places "$word" ;;
    --section) [[ $command =~ ^(watch|trigger)$ ]] && _feedclient_offer "$word" < <(_feedclient_ask completion --sections "$feed") ;;
    --only | --on) _feedclient_offer "$word" <<<$'added\nupdated\ndeleted\nmoved' ;;
    --since-file | --state | --timeout | --template | --print | --separator | --rows | --count | --interval | --throttle) ;;
    --where | --if | --animation | --retries | --jobs) ;;
    *) return 1 ;;
  esac
  return 0
}

# Offers the operand at a position after the command.
_feedclient_operand() {
  case $command:$1 in
    log-level:0) _feedclient_offer "$word" <<<$'error\nwarning\nnotice\ninfo\ndebug' ;;
    group:0) _feedclient_offer "$word" <<<$'status\nleave\njoin\nimage' ;;
    completion:0) _feedclient_offer "$word" <<<$'bash\nzsh\nfish' ;;
    kick:*) _feedclient_offer "$word" < <(_feedclient_connections) ;;
    call:0) _feedclient_offer "$word" < <(_feedclient_methods) ;;
    import:* | backup:* | restore:* | call:*) ;;
    *:0 | export:* | watch:*) _feedclient_offer "$word" < <(_feedclient_feeds "$command") ;;
    # Without a letter, there would be thousands of programs. For a path, readline completes names of files.
    trigger:1)
      _feedclient_unquote "$word"
      [[ -z $plain || $plain == */* ]] || _feedclient_offer "$word" < <(compgen -c -- "$plain" | sort -u)
      ;;
    range:1) _feedclient_offer "$word" < <(_feedclient_ask completion --sections "$feed") ;;
    select:* | deselect:*) _feedclient_places "$word" ;;
    get:1 | patch:1 | delete:*) _feedclient_offer "$word" < <(_feedclient_ask completion --ids "$feed") ;;
  esac
}

_feedclient() {
  local words word previous command="" feed="" socket="" ended="" position=0 index plain open kept
  COMPREPLY=()
  _feedclient_words
  word=${words[${#words[@]} - 1]} previous=${words[${#words[@]} - 2]}

  # The command is the first word that is neither an option nor the value of an option. The operands follow it. Behind --, all words
  # are operands.
  for ((index = 1; index < ${#words[@]} - 1; index++)); do
    _feedclient_unquote "${words[index]}"
    if [[ -n $ended || $plain != -?* ]]; then
      if [ -z "$command" ]; then
        command=$plain
      else
        [ "$position" -eq 0 ] && feed=$plain
        ((position++))
      fi
      continue
    fi
    case $plain in
      --) ended=1 ;;
      --socket)
        ((index++))
        _feedclient_unquote "${words[index]}"
        socket=$plain
        ;;
      --after | --animation | --at | --before | --bin | --child | --content | --count | --current | --default | \
      --filter | --fixed | --header | --id | --if | --interval | --jobs | --kind | --limit | --of | --offset | --on | \
      --only | --pattern | --print | --repeatable | --retain-count | --retain-seconds | --retain-until | --retries | \
      --rows | --section | --section-order | --separator | --since-file | --sort | --state | --template | \
      --throttle | --timeout | --type | --types | --where) ((index++)) ;;
      --socket=*) socket=${plain#*=} ;;
    esac
  done

  # Where nothing is offered, readline completes names of files, and quotes what it inserts.
  if [[ -z $ended && $previous == -* ]] && _feedclient_value "$previous"; then
    return
  elif [[ -z $ended && $word == -* ]]; then
    _feedclient_offer "$word" < <(_feedclient_options "$command")
  elif [ -z "$command" ] || { [ "$command" = help ] && [ "$position" -eq 0 ]; }; then
    _feedclient_offer "$word" < <(_feedclient_commands)
  else
    _feedclient_operand "$position"
  fi
}

complete -o default -F _feedclient feedclient
