# SPDX-License-Identifier: MIT OR Apache-2.0
# bash completion for memprof, which itself says what can follow: src/cmd/complete.c.

_memprof()
{
    local cur=${COMP_WORDS[COMP_CWORD]} IFS=$'\n' lines line
    [[ $cur == = ]] && cur=
    mapfile -t lines < <("${COMP_WORDS[0]}" __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
    case ${lines[0]} in
        :files) compopt -o filenames; COMPREPLY=($(compgen -f -- "$cur")) ;;
        :dirs) compopt -o filenames; COMPREPLY=($(compgen -d -- "$cur")) ;;
        :commands) COMPREPLY=($(compgen -c -f -- "$cur")) ;;
        :recordings)
            compopt -o filenames
            COMPREPLY=($(compgen -f -X '!*.memprof' -- "$cur"; compgen -d -- "$cur")) ;;
        *)
            COMPREPLY=("${lines[@]%%$'\t'*}")
            # Several processes are shown with their names; bash inserts what their ids have in common.
            if ((${#lines[@]} > 1)) && [[ ${lines[0]} == [0-9]* ]]; then
                COMPREPLY=("${lines[@]/$'\t'/  }")
            fi ;;
    esac
}

complete -F _memprof memprof
