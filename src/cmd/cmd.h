/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The commands, one file each.  Only this folder prints and decides exit statuses. */
#ifndef CMD_CMD_H
#define CMD_CMD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "attach/target.h"
#include "inject/session.h"
#include "lib/err.h"
#include "model/model.h"
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

/* Raises the limit of open files as far as permitted.  Return: 0, or -EMFILE with @err if fewer
 * than @n (at most 64) more files can be opened.  Refusing early is better than being unable to
 * detach. */
int want_descriptors(uint32_t n, struct mp_err *err);

/* From now on, if a mapped file is truncated, the missing pages read as zeros instead of raising
 * SIGBUS. */
void survive_shrunk_files(void);

/* Prints the error as "memprof: what" on stderr.  Return: the exit status in @err. */
int complain(const struct mp_err *err);
/* Prints a complaint about the command line and where to find help.  Return: MP_EXIT_USAGE. */
int usage_error(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* As usage_error(), after getopt_long() with its own messages off returned '?' or ':'. */
int option_error(const char *command, int opt, char *const *argv);
/* As usage_error(), for a surplus argument of a command that has -p. */
int unexpected_argument(const char *command, const char *arg);

/* Prints how many processes forked from a recorded one were restored.  Prints nothing for 0. */
void tell_restored(uint32_t n);

/* Parses "30s", "500ms", "2m", "1h", "45" to milliseconds.  Return: false if @text is not a
 * duration. */
bool parse_duration(const char *text, uint64_t *ms);
/* Parses "64k", "2M", "1G", "4096" to bytes.  Return: false if @text is not a size. */
bool parse_bytes(const char *text, uint64_t *bytes);
/* Parses a number below 2^32.  Return: false if @text is not one. */
bool parse_count(const char *text, uint32_t *count);
/* Parses live, allocated, count, peak, temporary or mapped; for page faults faulted, faults or
 * major.  Return: false if @text is none of them. */
bool parse_cost(const char *text, enum cost *cost);
/* Parses a process id.  Return: false if @text is not one. */
bool parse_pid(const char *text, pid_t *pid);

/* Directory for files kept between runs: $MEMPROF_CACHE_DIR (if set but empty: none), else memprof
 * in the user's cache directory.  Return: @buf, or NULL if there is none. */
const char *cache_path(char *buf, size_t size);

/* control/output_name.c: are all placeholders in @pattern known? */
bool output_pattern_ok(const char *pattern);
/* Expands %p (pid), %e (command), %t (time), %n (count) and %%.  If a second file would get the
 * name of the first, pid and count are inserted before the suffix. */
void output_name(const char *pattern, pid_t pid, uint32_t count, bool again, char *out,
		 size_t size);

/* The file name of a piece of the recording @name: @number is inserted before the suffix. */
void output_piece_name(const char *name, uint32_t number, char *out, size_t size);

/* cmd/options.c: the options that attach and run share. */
struct recording_options {
	const char *path;	  /* a pattern for output_name(); NULL: memprof-PID.memprof */
	uint64_t for_ms;	  /* how long to record; 0: until told to end */
	uint64_t ring_size;	  /* bytes; 0: default */
	uint64_t queue_size;	  /* bytes; 0: default */
	uint64_t cull_ms;	  /* blocks that live shorter are only counted; 0: do not cull */
	uint64_t sample_interval; /* mean bytes a sample; 0: record every allocation */
	uint64_t rotate;	  /* bytes of a piece, after which the next begins; 0: one file */
	uint64_t carry_budget; /* bytes of stacks that are carried over from the recorder before */
	uint32_t depth;	       /* innermost frames that are kept; 0: all */
	struct selection select;
	bool free_stacks;    /* record the stacks of frees, too */
	bool zero;	     /* fill new blocks with zeros */
	bool via_kernel;     /* use kernel probes instead of an agent in the target */
	bool via_agent;	     /* --via=agent was given explicitly */
	bool page_faults;    /* record page faults instead of allocations; via the kernel */
	uint64_t stack_size; /* via the kernel: bytes of stack copied per sample; 0: default */
	bool embed;	     /* put the binaries of the executed code into the recording */
	bool lossless, quiet, background;
	bool follow_fork, follow_exec;
	/* control/follow.c sets these for each recorder that it starts. */
	uint32_t count; /* number of recordings before this one */
	bool again;	/* the process has been recorded before */
	bool child;	/* followed, not on the command line: failures go to news_fd only */
	int news_fd;	/* pipe to the follower, for struct recording_news; 0: no follower */
};

/* Reads options from the environment: MEMPROF_OUTPUT for --output and so on, MEMPROF_LOSSLESS=1.
 * Return: 0, or -1 after it printed that a value is bad. */
int recording_environment(struct recording_options *o);

/* Handles an option that attach and run share; @opt as getopt_long() returned it.  Return: 1
 * handled, 0 not a shared option, -1 after it printed an error. */
int recording_option(int opt, const char *arg, struct recording_options *o);
/* Checks for options that exclude each other, and sets those implied by others.  Return: 0, or the
 * exit status after it printed an error. */
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

/* control/recording.c: records @t (after target_look() or target_launch()) until it ends or the
 * recording is ended, restores it and prints the summary.  Return: exit status. */
int recording_run(struct target *t, const struct recording_options *o, bool launched);

#endif
