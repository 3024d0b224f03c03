/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The commands: one file each.  Only this folder prints and decides exit statuses. */
#ifndef CMD_CMD_H
#define CMD_CMD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "attach/target.h"
#include "inject/session.h"
#include "lib/err.h"
#include "report/model.h"
#include "record/select.h"

int cmd_attach(int argc, char **argv);
int cmd_diff(int argc, char **argv);
int cmd_detach(int argc, char **argv);
int cmd_heap(int argc, char **argv);
int cmd_extract(int argc, char **argv);
int cmd_flush(int argc, char **argv);
int cmd_mark(int argc, char **argv);
int cmd_merge(int argc, char **argv);
int cmd_pause(int argc, char **argv);
int cmd_info(int argc, char **argv);
int cmd_leaks(int argc, char **argv);
int cmd_report(int argc, char **argv);
int cmd_resume(int argc, char **argv);
int cmd_run(int argc, char **argv);
int cmd_status(int argc, char **argv);
int cmd_strip(int argc, char **argv);
int cmd_symbolize(int argc, char **argv);
int cmd_verify(int argc, char **argv);

/* Raises the limit of open files as far as is allowed.  Return: 0, or -EMFILE with @err if fewer
 * than @n (at most 64) can be opened: better to refuse than to be unable to leave. */
int want_descriptors(uint32_t n, struct mp_err *err);

/* A file that shrinks while it is mapped reads as zeros from there on, from now. */
void survive_shrunk_files(void);

/* Prints "memprof: what" on stderr.  Return: the exit status of @err. */
int complain(const struct mp_err *err);
/* The same for a wrong command line; adds where help is. */
int usage_error(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* The same where getopt_long() returned '?' or ':', with its own messages off. */
int option_error(const char *command, int opt, char *const *argv);
/* The same for an argument too many of a command that takes -p. */
int unexpected_argument(const char *command, const char *arg);

/* Says how many processes that were forked from a recorded one were restored, unless none. */
void tell_restored(uint32_t n);

/* "30s", "500ms", "2m", "1h", "45": milliseconds in *@ms.  Return: false if @text is none. */
bool parse_duration(const char *text, uint64_t *ms);
/* "64k", "2M", "1G", "4096": bytes.  Return: false if @text is none. */
bool parse_bytes(const char *text, uint64_t *bytes);
/* A number below 2^32.  Return: false if @text is none. */
bool parse_count(const char *text, uint32_t *count);
/* live, allocated, count, peak, temporary, mapped; of page faults faulted, faults, major.  Return:
 * false if
 * @text is none. */
bool parse_cost(const char *text, enum cost *cost);
/* A process id.  Return: false if @text is none. */
bool parse_pid(const char *text, pid_t *pid);

/* Directory for what is kept between runs: $MEMPROF_CACHE_DIR (empty: none), else memprof in the
 * user's cache directory.  Return: @buf, or NULL: none. */
const char *cache_path(char *buf, size_t size);

/* Bytes as "1.5 MiB", in one of a few static places: at most 8 in one printf. */
const char *human(uint64_t bytes);
/* 1234567 as "1,234,567", likewise. */
const char *thousands(uint64_t n);

/* cmd/ask.c: what the session in @pid says of itself, read from outside.  Return: false if there
 * is none that may be read. */
bool session_peek(pid_t pid, struct ss_control *c, struct ss_journal *j);
/* The recorder lives if its pid has the start time it had then. */
bool recorder_lives(const struct ss_journal *j);
/* Does it record by now? */
bool recorder_is_ready(const struct ss_journal *j);

/* cmd/output_name.c: is @pattern free of placeholders that are not known? */
bool output_pattern_ok(const char *pattern);
/* Expands %p (pid), %e (command), %t (time), %n (count), %%.  Where a second file would get the
 * name of the first, pid and count are put in before the suffix. */
void output_name(const char *pattern, pid_t pid, uint32_t count, bool again, char *out,
		 size_t size);

/* The name of a piece of that recording: @number is put in before the suffix. */
void output_piece_name(const char *name, uint32_t number, char *out, size_t size);

/* cmd/options.c: what attach and run share. */
struct recording_options {
	const char *path;	  /* pattern, output_name(); NULL: memprof-PID.memprof */
	uint64_t for_ms;	  /* 0: until told otherwise */
	uint64_t ring_size;	  /* bytes; 0: default */
	uint64_t queue_size;	  /* bytes; 0: default */
	uint64_t cull_ms;	  /* blocks that live shorter are only counted; 0: none */
	uint64_t sample_interval; /* bytes; 0: every allocation */
	uint64_t rotate;	  /* bytes of a file after which another begins; 0: none */
	uint64_t carry_budget;	  /* bytes of stacks that a recorder takes over */
	uint32_t depth;		  /* innermost frames that are kept; 0: all */
	struct selection select;
	bool free_stacks;    /* frees with their stacks */
	bool zero;	     /* blocks are filled with zeros */
	bool via_kernel;     /* probes of the kernel instead of an agent in the target */
	bool via_agent;	     /* said, not only the default */
	bool page_faults;    /* via the kernel: those, instead of allocations */
	uint64_t stack_size; /* via the kernel: bytes of stack a sample; 0: default */
	bool embed;	     /* the recording carries the binaries of what ran */
	bool lossless, quiet, background;
	bool follow_fork, follow_exec;
	/* Set by cmd/follow.c for each recorder that it starts. */
	uint32_t count; /* recordings before this one */
	bool again;	/* of the same process */
	bool child;  /* not the process that was asked for: why it fails is told by news_fd only */
	int news_fd; /* struct recording_news; 0: no follower */
};

/* Takes what the environment says: MEMPROF_OUTPUT for --output and so on, MEMPROF_LOSSLESS=1.
 * Return: 0, -1 on a bad value (already told). */
int recording_environment(struct recording_options *o);

/* Options both have; @opt as getopt_long() returned it.  Return: 1 taken, 0 not ours, -1 error
 * (already told). */
int recording_option(int opt, const char *arg, struct recording_options *o);
/* Options that exclude each other, or bring others along.  Return: 0, or an exit status (already
 * told). */
int recording_options_settle(struct recording_options *o);
#define RECORDING_SHORT "o:q"
#define RECORDING_LONG                                                                             \
	{"output", required_argument, NULL, 'o'}, {"for", required_argument, NULL, 'F'},           \
	    {"lossless", no_argument, NULL, 'L'}, {"follow-fork", no_argument, NULL, 'W'},         \
	    {"follow-exec", no_argument, NULL, 'X'},                                               \
	    {"carry-budget", required_argument, NULL, 'Y'},                                        \
	    {"ring-size", required_argument, NULL, 'R'},                                           \
	    {"queue-size", required_argument, NULL, 'Q'}, {"cull", required_argument, NULL, 'C'},  \
	    {"depth", required_argument, NULL, 'D'}, {"thread", required_argument, NULL, 'T'},     \
	    {"via", required_argument, NULL, 'V'}, {"stack-size", required_argument, NULL, 'K'},   \
	    {"event", required_argument, NULL, 'E'}, {"free-stacks", no_argument, NULL, 'J'},      \
	    {"zero", no_argument, NULL, 'Z'}, {"sample", required_argument, NULL, 'S'},            \
	    {"rotate", required_argument, NULL, 'M'}, {"embed", no_argument, NULL, 'N'},           \
	    {"paused", no_argument, NULL, 'P'},                                                    \
	{                                                                                          \
		"quiet", no_argument, NULL, 'q'                                                    \
	}

/* cmd/recording.c: records @t (looked at, or launched and stopped) until it ends or somebody ends
 * it, restores it and prints what was found.  Return: exit status. */
int recording_run(struct target *t, const struct recording_options *o, bool launched);

#endif
