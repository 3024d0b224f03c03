/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* How to record a process. */
#ifndef CONTROL_OPTIONS_H
#define CONTROL_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>
#include "lib/debuginfod_urls.h"
#include "record/select.h"

struct debuginfod; /* unwind/symbols/debuginfod.h */
struct notices;
struct recording_orders; /* control/orders.h */
struct steps;		 /* attach/steps.h */

struct recording_options {
	const char *path;	  /* a pattern for output_name(); NULL: memprof-PID.memprof */
	uint64_t for_ms;	  /* how long to record; 0: until told to end */
	uint64_t ring_size;	  /* bytes; 0: default */
	uint64_t queue_size;	  /* bytes; 0: default */
	uint32_t jobs;		  /* threads of the recorder, see recorder_config; 0: default */
	uint64_t cull_ms;	  /* blocks that live shorter are only counted; 0: do not cull */
	bool history;		  /* do not cull */
	uint64_t sample_interval; /* mean bytes a sample; 0: record every allocation */
	uint32_t overhead_ppm;	  /* budget (record/budget/budget.h), millionths; 0: none */
	uint64_t rotate;	  /* bytes of a piece, after which the next begins; 0: one file */
	uint32_t keep;		  /* finished pieces that are not deleted; 0: all */
	bool live_only;		  /* record only the live heap, written when asked */
	bool unkept;	       /* the file is removed at the end, so no symbols are written to it */
	int last_view;	       /* a file that gets the last view, see recorder_config; 0: none */
	uint64_t carry_budget; /* bytes of stacks that are carried over from the recorder before */
	uint32_t depth;	       /* innermost frames that are kept; 0: all */
	struct select_config select;
	bool free_stacks;    /* record the stacks of frees, too */
	bool zero;	     /* fill new blocks with zeros */
	bool via_kernel;     /* use kernel probes instead of an agent in the target */
	bool via_agent;	     /* --via=agent was given explicitly */
	bool page_faults;    /* record page faults instead of allocations; via the kernel */
	uint64_t stack_size; /* via the kernel: bytes of stack copied per sample; 0: default */
	bool embed;	     /* put the binaries of the executed code into the recording */
	enum debuginfod_ask debuginfod;
	struct debuginfod *servers; /* asked for debug files after the end; NULL: none */
	const char *to;		    /* HOST[:PORT] of the receiver, instead of a file */
	bool announce;		    /* wait for a receiver that connects, instead of a file */
	const char *token_file;
	uint64_t send_buffer; /* bytes that wait for the receiver at most */
	uint64_t deliver_ms;  /* after the end, see sender_config */
	bool lossless;
	bool no_thinning; /* lose events that are too many, instead of estimating them */
	bool verbose;	  /* the summary has all sums, not only a screen */
	bool quiet;	  /* report only results and what goes wrong */
	bool follow_fork, follow_exec; /* each program has a recording of its own */
	bool replace_at_exec; /* the program that the process executes is recorded instead, into
				 the same file; without follow_exec and rotate */
	const struct notices *notices;	       /* receives the reports; must be set */
	const struct recording_orders *orders; /* must be set */
	struct steps *(*steps)(void); /* makes the steps of struct target (--debug); NULL: none */
	/* control/follow.c sets these for each recorder that it starts. */
	uint32_t count; /* number of recordings before this one */
	bool again;	/* the process has been recorded before */
	bool child;	/* followed, not on the command line: failures go to news_fd only */
	int news_fd;	/* pipe to the follower, for struct recording_news; 0: no follower */
};

#endif
