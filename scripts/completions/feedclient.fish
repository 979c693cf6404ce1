# Completion of feedclient for fish. Commands, options and feeds are read from feedclient at run time.

function __feedclient_words
    set -l skip 0
    for word in (commandline -opc)[2..]
        if test $skip -eq 1
            set skip 0
        else if contains -- $word --socket --timeout
            set skip 1
        else if not string match -q -- '-*' $word
            echo $word
        end
    end
end

function __feedclient_commands
    feedclient --help 2>/dev/null | string replace -rf '^  ([a-z][A-Za-z-]*)  +(.*)' '$1\t$2'
end

function __feedclient_feeds
    set -l names (feedclient --timeout 1s feeds --names 2>/dev/null)
    if contains -- (__feedclient_words)[1] watch trigger get range query snapshot select deselect selected verify describe
        printf '%s\n' $names
    else
        string match -v '*/*' -- $names
    end
end

function __feedclient_connections
    feedclient --json --timeout 1s clients 2>/dev/null | string replace -rf '^\{"connection":([0-9]+),"uid":([0-9]+),"pid":([0-9]+).*' '$1\tuid $2 pid $3'
end

function __feedclient_options
    set -l words (__feedclient_words)
    feedclient $words[1] --help 2>/dev/null | string replace -rf '^ +(?:-[A-Za-z], )?(--[a-z-]+).*' '$1'
end

complete -c feedclient -f
complete -c feedclient -n 'test (count (__feedclient_words)) -eq 0' -a '(__feedclient_commands)'
complete -c feedclient -n 'test (count (__feedclient_words)) -eq 1; and test (__feedclient_words)[1] = help' -a '(__feedclient_commands)'
complete -c feedclient -n 'test (count (__feedclient_words)) -eq 1; and not contains (__feedclient_words)[1] call import backup restore log-level kick' -a '(__feedclient_feeds)'
complete -c feedclient -n 'contains -- (__feedclient_words)[1] export watch' -a '(__feedclient_feeds)'
complete -c feedclient -n 'contains kick (__feedclient_words)[1]' -a '(__feedclient_connections)'
complete -c feedclient -n 'contains log-level (__feedclient_words)[1]' -a 'error warning notice info debug'
complete -c feedclient -n 'contains (__feedclient_words)[1] import backup restore' -F
complete -c feedclient -n 'string match -q -- "-*" (commandline -ct)' -a '(__feedclient_options)'
complete -c feedclient -l socket -r -F
complete -c feedclient -l since-file -r -F
complete -c feedclient -l state -r -F
complete -c feedclient -l kind -x -a 'collection array single composed segmented slots view'
complete -c feedclient -l child -x -a '(feedclient --timeout 1s feeds --names 2>/dev/null)'
complete -c feedclient -l of -x -a '(feedclient --timeout 1s feeds --names 2>/dev/null)'
