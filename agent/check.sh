#!/bin/sh
# The agent's gate: fails the build when the blob has something its loader does not do or a
# production process must not meet.  Usage: check.sh AGENT.ELF FOLDER-WITH-.su-FILES
set -eu
elf=$1
fail() { echo "agent gate: $1" >&2; rm -f "$elf"; exit 1; }

[ -z "$(nm -u "$elf" | grep -v '_GLOBAL_OFFSET_TABLE_' || true)" ] || fail "undefined symbols: $(nm -u "$elf")"
readelf -rW "$elf" | grep -q 'R_' && fail "relocations are left: $(readelf -rW "$elf" | grep R_ | head -3)"
readelf -lW "$elf" | grep -q 'TLS' && fail "thread-local storage"
readelf -lW "$elf" | awk '/LOAD/ { n++; if ($0 ~ /W/) w = 1 } END { exit !(n == 1 && !w) }' || fail "not one read+execute segment"
objdump -d --no-show-raw-insn "$elf" | grep -Eq '%[xyz]mm|%mm[0-7]|%st' && fail "vector or floating point registers"
objdump -d --no-show-raw-insn "$elf" | grep -Eq '%fs:' && ! objdump -d --no-show-raw-insn "$elf" | grep '%fs:' | grep -vq '%fs:0x0' || fail "thread-local access beyond the thread pointer"
size=$(stat -c %s "$elf")
[ "$size" -lt 262144 ] || fail "larger than 256 KiB"
worst=$(cat "$2"/*.su | awk '{ if ($2 > m) m = $2 } END { print m }')
[ "$worst" -le 320 ] || fail "a function uses $worst bytes of stack"
