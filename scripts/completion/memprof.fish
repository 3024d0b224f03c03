# SPDX-License-Identifier: MIT OR Apache-2.0
# fish completion for memprof, which itself says what can follow: src/cmd/complete.c.

function __memprof_complete
    set -l words (commandline -opc) (commandline -ct)
    set -l lines ($words[1] __complete $words[2..-1] 2>/dev/null)
    switch "$lines[1]"
        case :files
            __fish_complete_path (commandline -ct)
        case :dirs
            __fish_complete_directories (commandline -ct)
        case :commands
            __fish_complete_command
        case :recordings
            __fish_complete_suffix .memprof
        case '*'
            printf '%s\n' $lines
    end
end

complete -c memprof -f -a '(__memprof_complete)'
