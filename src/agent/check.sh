#!/bin/sh
# Checks the agent's image: fails the build if it has something that memprof does not load or that
# must not run in a production process.  Usage: check.sh AGENT.ELF FOLDERS-WITH-.su-FILES...
# CROSS: prefix of the binutils; FORBIDDEN: regular expression of the instructions that no agent of
# this architecture may have: vector and floating point registers, thread-local data.
set -eu
elf=$1
shift
fail() { echo "agent gate: $1" >&2; rm -f "$elf"; exit 1; }
nm=${CROSS:-}nm readelf=${CROSS:-}readelf objdump=${CROSS:-}objdump

[ -z "$($nm -u "$elf" | grep -v '_GLOBAL_OFFSET_TABLE_' || true)" ] || fail "undefined symbols: $($nm -u "$elf")"
symbols=$($nm "$elf")
for entry in $(sed -n 's/.*"\(ag_entry_[a-z_]*\)".*/\1/p' "$(dirname "$0")/../inject/blob.c"); do
	echo "$symbols" | grep -q " [Tt] $entry\$" || fail "agent-entry.S has no $entry"
done
$readelf -rW "$elf" | grep -q 'R_' && fail "relocations are left: $($readelf -rW "$elf" | grep R_ | head -3)"
$readelf -lW "$elf" | grep -q 'TLS' && fail "thread-local storage"
$readelf -lW "$elf" | awk '/LOAD/ { n++; if ($0 ~ /W/) w = 1 } END { exit !(n == 1 && !w) }' || fail "not one read+execute segment"
# Instructions only, without addresses and symbols.
bad=$($objdump -d --no-show-raw-insn "$elf" | sed -n 's/^ *[0-9a-f]*:\t//p' | sed 's/[0-9a-f]* <.*//' | grep -E "$FORBIDDEN" | head -3 || true)
[ -z "$bad" ] || fail "forbidden: $bad"
size=$(($($readelf -lW "$elf" | awk '/LOAD/ { print $5 }')))
[ "$size" -lt 65536 ] || fail "larger than 64 KiB"
worst=$(find "$@" -maxdepth 1 -name '*.su' -exec cat {} + | awk '{ if ($2 > m) m = $2 } END { print m + 0 }')
[ "$worst" -gt 0 ] || fail "no stack sizes"
[ "$worst" -le 320 ] || fail "a function uses $worst bytes of stack"
