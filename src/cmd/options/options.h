/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The options that attach and run share, from the command line and the environment. */
#ifndef CMD_OPTIONS_OPTIONS_H
#define CMD_OPTIONS_OPTIONS_H

#include <getopt.h>
#include "cmd/servers.h"
#include "control/options.h"

/* Reads options from the environment: MEMPROF_OUTPUT for --output and so on, MEMPROF_LOSSLESS=1.
 * @command: its name, for messages.  Return: 0, or the exit status after it printed an error. */
int recording_environment(const char *command, struct recording_options *o);

/* Handles an option that attach and run share; @opt as getopt_long() returned it.  Return: 1
 * handled, 0 not a shared option, -1 after it printed an error. */
int recording_option(const char *command, int opt, const char *arg, struct recording_options *o);
/* Checks for options that exclude each other, and sets those implied by others.  Return: 0, or the
 * exit status after it printed an error. */
int recording_options_settle(const char *command, struct recording_options *o);
#define RECORDING_SHORT "o:q"
#define RECORDING_LONG                                                                             \
	{"output", required_argument, NULL, 'o'}, {"for", required_argument, NULL, 'F'},           \
	    {"lossless", no_argument, NULL, 'L'}, {"follow-fork", no_argument, NULL, 'W'},         \
	    {"follow-exec", no_argument, NULL, 'X'}, {"no-follow-exec", no_argument, NULL, 'x'},   \
	    {"carry-budget", required_argument, NULL, 'Y'},                                        \
	    {"no-thinning", no_argument, NULL, 'U'}, {"ring-size", required_argument, NULL, 'R'},  \
	    {"queue-size", required_argument, NULL, 'Q'}, {"cull", required_argument, NULL, 'C'},  \
	    {"depth", required_argument, NULL, 'D'}, {"thread", required_argument, NULL, 'T'},     \
	    {"via", required_argument, NULL, 'V'}, {"stack-size", required_argument, NULL, 'K'},   \
	    {"event", required_argument, NULL, 'E'}, {"free-stacks", no_argument, NULL, 'J'},      \
	    {"history", no_argument, NULL, 'H'}, {"zero", no_argument, NULL, 'Z'},                 \
	    {"sample", required_argument, NULL, 'S'}, {"overhead", required_argument, NULL, 'O'},  \
	    {"rotate", required_argument, NULL, 'M'}, {"debuginfod", no_argument, NULL, 'I'},      \
	    {"no-debuginfod", no_argument, NULL, 'i'}, {"embed", no_argument, NULL, 'N'},          \
	    {"paused", no_argument, NULL, 'P'}, {"verbose", no_argument, NULL, 'v'},               \
	    {"keep", required_argument, NULL, 'k'}, {"live-only", no_argument, NULL, 'l'},         \
	    {"jobs", required_argument, NULL, 'j'}, {"to", required_argument, NULL, 'G'},          \
	    {"announce", no_argument, NULL, 'A'}, {"token", required_argument, NULL, 't'},         \
	    {"send-buffer", required_argument, NULL, 'b'},                                         \
	    {"deliver-within", required_argument, NULL, 'w'},                                      \
	{                                                                                          \
		"quiet", no_argument, NULL, 'q'                                                    \
	}

/* The options of RECORDING_LONG, for --help. */
/* clang-format off */
#define RECORDING_HELP \
	"  -o, --output FILE    the recording (default memprof-%p.memprof; %p pid, %e command,\n" \
	"                       %t time, %n count)\n" \
	"      --for TIME       end after 30s, 500ms, 5m ...\n" \
	"      --sample BYTES   record samples: on average one per BYTES requested (512k for\n" \
	"                       always-on use)\n" \
	"      --overhead PART  cost at most this part of the process's CPU time, such as 1%: records\n" \
	"                       everything while that costs less, and samples otherwise\n" \
	"      --follow-fork    record forked children too, each into a file of its own\n" \
	"      --follow-exec    also record a program that the process executes (exec), into a file\n" \
	"                       of its own\n" \
	"      --no-follow-exec\n" \
	"                       end the recording when the process executes another program\n" \
	"      --lossless       make the process wait when the recorder is behind, instead of losing\n" \
	"                       events\n" \
	"      --no-thinning    lose the events that are too many for the recorder, and count them,\n" \
	"                       instead of recording a part that represents them\n" \
	"      --ring-size N    size of each thread's ring, 64k to 64M (default 2M)\n" \
	"      --queue-size N   memory limit of the recorder's queue (default 256M)\n" \
	"      --jobs N         threads that process the records, 1 to 3 (default: half of the\n" \
	"                       processors that memprof may use)\n" \
	"      --via WAY        agent (default), or kernel: uprobes, nothing is put into the process\n" \
	"      --event WHAT     allocations (default), or page-faults: which stacks make memory\n" \
	"                       resident; recorded by the kernel, nothing is put into the process\n" \
	"      --stack-size N   with --via=kernel or page-faults: bytes of stack copied at each\n" \
	"                       event (16k)\n" \
	"      --free-stacks    record where each block is freed, too\n" \
	"      --zero           fill blocks with zeros, as calloc does\n" \
	"      --carry-budget N\n" \
	"                       bytes of stacks taken over from an earlier recorder (default 4M)\n" \
	"      --cull TIME      keep only sums of blocks that lived shorter than this (default 1s)\n" \
	"      --history        keep every allocation and free\n" \
	"      --rotate SIZE    begin a new file at this size (FILE-1, FILE-2 ...), each complete by\n" \
	"                       itself; memprof merge joins them\n" \
	"      --keep N         with --rotate: delete finished files but the newest N\n" \
	"      --live-only      keep no events, only what is live: FILE is written at memprof flush\n" \
	"                       and at the end\n" \
	"      --to HOST[:PORT] send the recording to memprof gather there, instead of writing a file\n" \
	"                       (port 9743)\n" \
	"      --announce       wait until memprof gather --find of the local network connects\n" \
	"      --token FILE     with --to and --announce: has the secret that the receiver has, too\n" \
	"      --send-buffer N  memory for what the receiver does not have yet (default 16M)\n" \
	"      --deliver-within TIME\n" \
	"                       after the end, give up if nothing arrives for so long (default 30s)\n" \
	"      --embed          put program and libraries into the recording, to symbolize it\n" \
	"                       elsewhere\n" \
	SERVERS_HELP \
	"      --depth N        keep only the N innermost frames of each stack\n" \
	"      --thread NAME    only threads of this name (fnmatch pattern; up to 16 times)\n" \
	"      --paused         start paused; SIGUSR1 to memprof pauses and resumes\n" \
	"  -q, --quiet          no progress\n" \
	"      --verbose        a summary with all sums, more sites and the lengths of the pauses\n" \
	"Each option can also be set in the environment: MEMPROF_RING_SIZE=4M, MEMPROF_LOSSLESS=1.\n"
/* clang-format on */

#endif
