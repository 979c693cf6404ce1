# Completion of feedd for fish. Options are read from its help at run time.

function __feedd_options
    feedd --help 2>/dev/null | string replace -rf '^ +(?:-[a-zA-Z], )?(--[a-z-]+).*' '$1'
end

complete -c feedd -f
complete -c feedd -n 'string match -q -- "-*" (commandline -ct)' -a '(__feedd_options)'
complete -c feedd -l socket -r -F
complete -c feedd -l config -r -F
complete -c feedd -l check-config -r -F
complete -c feedd -l metrics-file -r -F
complete -c feedd -l state -x -a '(__fish_complete_directories (commandline -ct))'
complete -c feedd -l durability -x -a 'memory process disk'
complete -c feedd -l socket-mode -x -a '0600 0660 0666'
complete -c feedd -l socket-group -x -a '(__fish_complete_groups)'
complete -c feedd -l log-level -x -a 'error warning notice info debug'
complete -c feedd -l reload -x -a '(pgrep -x feedd)'
complete -c feedd -l check-reload -x -a '(pgrep -x feedd)'
