# Completion of feedclient for fish. Commands, options, feeds, sections and identities are read from feedclient at run time.

# Prints the command and its operands: the words that are neither options nor their values. Behind --, all words are operands.
function __feedclient_words
    set -l skip 0
    for word in (commandline -opc)[2..]
        if test $skip -eq 1
            set skip 0
        else if test $skip -eq 2
            echo $word
        else if test "$word" = --
            set skip 2
        else if contains -- $word \
            --socket --after --animation --at --before --bin --child --content --count --current --default --filter \
            --fixed --header --id --if --interval --jobs --kind --limit --of --offset --on --only --pattern --print \
            --repeatable --retain-count --retain-seconds --retain-until --retries --rows --section --section-order \
            --separator --since-file --sort --state --template --throttle --timeout --type --types --where
            set skip 1
        else if not string match -q -- '-?*' $word
            echo $word
        end
    end
end

# Runs feedclient with the socket of the command line.
function __feedclient_ask
    set -l words (commandline -opc)
    set -l socket (string match -- '--socket=*' $words)
    set -l place (contains -i -- --socket $words)
    and test $place -lt (count $words)
    and set socket --socket $words[(math $place + 1)]
    feedclient $socket --timeout 1s $argv 2>/dev/null
end

function __feedclient_sections
    __feedclient_ask completion --sections (__feedclient_words)[2]
end

# The sections, each with the comma before its row.
function __feedclient_places
    printf '%s,\n' (__feedclient_sections)
end

function __feedclient_ids
    __feedclient_ask completion --ids (__feedclient_words)[2]
end

function __feedclient_sockets
    for path in $XDG_RUNTIME_DIR/feedd.sock /run/feedd/feedd.sock
        test -S $path; and echo $path
    end
end

# Whether the command is one of the arguments and has a number of operands; + stands for one or more.
function __feedclient_needs
    set -l words (__feedclient_words)
    set -l operands (math (count $words) - 1)
    contains -- "$words[1]" $argv[2..]
    and if test $argv[1] = +
        test $operands -ge 1
    else
        test $operands -eq $argv[1]
    end
end

# Whether the words are behind --.
function __feedclient_has_ended
    contains -- -- (commandline -opc)
end

# Whether the word belongs to the command that trigger runs.
function __feedclient_runs
    __feedclient_has_ended; and __feedclient_needs + trigger
end

# Completes the words of that command like a line of their own.
function __feedclient_program
    complete -C (string join ' ' -- (string escape -- (__feedclient_words)[3..]) (commandline -ct))
end

function __feedclient_commands
    feedclient --help 2>/dev/null | string replace -rf '^  ([a-z][A-Za-z-]*)  +(.*)' '$1\t$2'
end

function __feedclient_feeds
    set -l names (__feedclient_ask feeds --names)
    if contains -- (__feedclient_words)[1] watch trigger get range query snapshot select deselect selected verify describe
        printf '%s\n' $names
    else
        string match -v '*/*' -- $names
    end
end

function __feedclient_methods
    __feedclient_ask --json call hello | grep -oE '"methods":\[[^]]*' | grep -oE '[[,]"[a-zA-Z]+"' | string trim -c '[,"'
end

function __feedclient_connections
    __feedclient_ask --json clients | string replace -rf '^\{"connection":([0-9]+),"uid":([0-9]+),"pid":([0-9]+).*' '$1\tuid $2 pid $3'
end

function __feedclient_options
    set -l words (__feedclient_words)
    feedclient $words[1] --help 2>/dev/null | string replace -rf '^ +(?:-[A-Za-z], )?(--[a-z-]+).*' '$1'
end

complete -c feedclient -f
complete -c feedclient -n 'test (count (__feedclient_words)) -eq 0' -a '(__feedclient_commands)'
complete -c feedclient -n 'test (count (__feedclient_words)) -eq 1; and test (__feedclient_words)[1] = help' -a '(__feedclient_commands)'
complete -c feedclient -n 'test (count (__feedclient_words)) -eq 1; and not contains (__feedclient_words)[1] call import backup restore log-level group kick completion' -a '(__feedclient_feeds)'
complete -c feedclient -n 'contains -- (__feedclient_words)[1] export watch' -a '(__feedclient_feeds)'
complete -c feedclient -n 'contains kick (__feedclient_words)[1]' -a '(__feedclient_connections)'
complete -c feedclient -n 'contains log-level (__feedclient_words)[1]' -a 'error warning notice info debug'
complete -c feedclient -n 'contains group (__feedclient_words)[1]' -a 'status leave join image'
complete -c feedclient -n 'contains (__feedclient_words)[1] import backup restore' -F
complete -c feedclient -n 'not __feedclient_has_ended; and string match -q -- "-*" (commandline -ct)' -a '(__feedclient_options)'
complete -c feedclient -n __feedclient_runs -a '(__feedclient_program)'
complete -c feedclient -n '__feedclient_needs 0 call' -a '(__feedclient_methods)'
complete -c feedclient -n '__feedclient_needs 0 completion' -a 'bash zsh fish'
complete -c feedclient -n '__feedclient_needs 1 range' -a '(__feedclient_sections)'
complete -c feedclient -n '__feedclient_needs + select deselect' -a '(__feedclient_places)'
complete -c feedclient -n '__feedclient_needs 1 get patch' -a '(__feedclient_ids)'
complete -c feedclient -n '__feedclient_needs + delete' -a '(__feedclient_ids)'
complete -c feedclient -n '__feedclient_needs + watch trigger' -l section -x -a '(__feedclient_sections)'
complete -c feedclient -l only -x -a 'added updated deleted moved'
complete -c feedclient -l on -x -a 'added updated deleted moved'
complete -c feedclient -n '__feedclient_needs 1 get' -l at -x -a '(__feedclient_places)'
complete -c feedclient -n '__feedclient_needs + move' -l id -x -a '(__feedclient_ids)'
complete -c feedclient -n '__feedclient_needs + move' -l before -x -a '(__feedclient_ids)'
complete -c feedclient -n '__feedclient_needs + move' -l after -x -a '(__feedclient_ids)'
complete -c feedclient -l socket -r -F -a '(__feedclient_sockets)'
complete -c feedclient -l since-file -r -F
complete -c feedclient -l state -r -F
complete -c feedclient -l kind -x -a 'collection array single composed segmented slots view'
complete -c feedclient -l child -x -a '(__feedclient_ask feeds --names)'
complete -c feedclient -l of -x -a '(__feedclient_ask feeds --names)'
