#compdef memprof
# SPDX-License-Identifier: MIT OR Apache-2.0
# zsh completion for memprof, which itself says what can follow: src/cmd/complete.c.

local -a lines
lines=("${(@f)$("${words[1]}" __complete "${(@)words[2,CURRENT]}" 2>/dev/null)}")
case ${lines[1]} in
    :files) _files ;;
    :dirs) _files -/ ;;
    :commands) _command_names -e || _files ;;
    :recordings) _files -g '*.memprof' ;;
    ?*) lines=("${(@)${(@)lines//:/\\:}/$'\t'/:}"); _describe 'memprof' lines ;;
esac
