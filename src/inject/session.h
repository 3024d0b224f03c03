/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A session: everything memprof puts into a process, and its removal.  The file to read first.
 *
 *	session_open()		first short stop: memory for the agent and the session block
 *	session_install()	second short stop: hooks are installed; again for new modules
 *	... the process runs untraced ...
 *	session_close()		last stop: text restored, memory unmapped
 *
 *	session_adopt()		opens a session whose recorder is gone, for session_close()
 *
 * States in journal.state: OPENING -> PREPARED -> PATCHING -> LIVE -> RESTORING -> (gone |
 * DORMANT).
 */
#ifndef INJECT_SESSION_H
#define INJECT_SESSION_H

#include <stdbool.h>
#include "attach/target.h"
#include "formats/session.h"
#include "inject/blob.h"
#include "inject/block/tables.h"
#include "inject/hooks/find.h"
#include "lib/check.h"

struct session_options {
	const char *recording; /* path, for status */
	const char *cache; /* directory of cached unwind tables, unwind/table_cache.h; NULL: none */
	const char *control; /* name of the recorder's socket; record/control.h */
	uint64_t ring_size;  /* bytes per thread, power of two; 0: default */
	bool lossless;
	bool no_thinning; /* events that do not fit into a ring are lost, none are thinned out */
	bool free_stacks; /* frees are recorded with their stacks; not with sample_interval */
	bool zero;	  /* fill blocks with zeros like calloc's; not with sample_interval */
	uint64_t sample_interval; /* bytes, at most SS_MAX_INTERVAL; 0: every allocation */
	uint32_t overhead_ppm;	  /* record/budget/budget.h; not with the two before; 0: none */
	bool no_hooks; /* session_observe(): build only tables, search for no functions */
};

struct session {
	struct target *t;
	struct blob blob;
	struct tables tables;
	struct hook_plan plan;	    /* all hooks: first those of the journal, then new ones */
	uint32_t next_reused;	    /* where the search for a reusable journal entry begins */
	struct ss_control *block;   /* memprof's mapping; the target can write to it */
	struct ss_control layout;   /* what memprof wrote there: trusted */
	struct ss_journal *journal; /* memprof's own; the block has a copy */
	struct ss_journal *shared;  /* the copy in the block */
	uint64_t length;
	uint64_t open_stop_ns, patch_stop_ns;
	uint64_t close_stop_ns; /* duration of all stops of all threads */
	uint64_t close_ns;	/* duration of session_close() */
	bool adopted;
	bool look_again;	/* modules can have been loaded while no recorder was running */
	bool zero, free_stacks; /* as in session_options */
	bool observes;		/* by session_observe(): nothing is in the target */
	bool no_hooks;		/* as in session_options */
	bool other_agent;	/* of another build of memprof: it gets no new hooks */
	uint32_t looked_at;	/* number of threads that session_watch_filters() has checked */
	bool stopped; /* the target was stopped before session_open() (run) and stays stopped */
};

/**
 * session_open() - map the agent and the session block into the target
 * @t: after target_look(), or stopped (target_launch(): stays stopped)
 * Fails before touching anything if there is a session already, no known allocator, or a seccomp
 * filter that forbids a needed call.
 */
__must_check int session_open(struct session *s, struct target *t,
			      const struct session_options *options, struct mp_err *err);

/**
 * session_install() - install the planned hooks that are new, in one short stop
 *
 * Installs all of them or none.  On failure the earlier hooks keep working, the journal has what is
 * in the target, and the new hooks are forgotten (session_refresh() plans them again when more
 * modules are loaded).  Afterwards the target runs and is not traced.  Only a target that was
 * stopped before session_open() stays stopped on failure, for session_close().
 * Return: 0 or a negative errno with @err filled.
 */
__must_check int session_install(struct session *s, struct mp_err *err);

/* Looks for new modules and publishes their tables.  Return: 1 if some have functions to hook
 * (session_install() installs them), 0 if not, or a negative errno. */
__must_check int session_refresh(struct session *s);

/* Opens a session of another recorder.  If that recorder had only opened a descriptor in the
 * process, @s has no block, and session_close() closes the descriptor. */
__must_check int session_adopt(struct session *s, struct target *t, struct mp_err *err);

/**
 * session_resume() - continue a session whose recorder is gone
 * Hooks and agent stay as they are; the target is neither stopped nor traced.  The journal has the
 * earlier recorder until session_take_over().
 * Return: 0; -EBUSY if the session was not live, -EPROTO if it is damaged, with @err.
 */
__must_check int session_resume(struct session *s, struct target *t, struct mp_err *err);
/* Enters this process in the journal as the recorder.  Return: 0; -EBUSY if another one was faster.
 */
__must_check int session_take_over(struct session *s, const struct session_options *options);
/* The recording continues in @path (absolute): a later recorder reads that file. */
void session_set_recording(struct session *s, const char *path);
/* Gives up the session to a later recorder. */
void session_leave(struct session *s);

/**
 * session_observe() - a session that puts nothing into the target
 * @t: after target_look(); keeps running, is not traced
 * The block is in memprof's own memory; the caller fills its rings.  session_refresh() and
 * session_free() work as usual; session_install() and session_close() must not be used.
 */
__must_check int session_observe(struct session *s, struct target *t,
				 const struct session_options *options, struct mp_err *err);
/* Adds the new planned hooks to the journal, as if they were installed.  Return: 0, -ENOSPC. */
__must_check int session_observe_hooks(struct session *s);

/* Is the target a forked child of a recorded process?  It has the text and the mappings, but a
 * wiped gate.  Its parent's journal is read, but not written. */
bool session_is_child(struct session *s);

/* Makes hooks pass calls through from now on (no stop). */
__must_check int session_mute(struct session *s);

/**
 * session_watch_filters() - stop the agent from making system calls if a thread has a seccomp filter
 * that is newer than the session
 *
 * Most filters are noticed before they are installed (agent/prctl_hook.c).  Those installed without
 * prctl() are found by calling this function several times a second.
 */
void session_watch_filters(struct session *s);

/**
 * session_close() - restore the target and remove everything
 *
 * After it has returned 0, no thread can write to the rings any more; memprof's mapping of the
 * block exists until session_free().  Works also for a forked child with a copy of a live session.
 * Return: 0; -EAGAIN with @err (MP_EXIT_NOT_RESTORED) if a thread did not leave the agent: the text
 * is restored, but pages remain, which a later detach removes; -ESRCH if the process is gone.
 */
__must_check int session_close(struct session *s, struct mp_err *err);
void session_free(struct session *s);

/* Is @pc in the hooked function, after its first byte?  @kind: set to enum ss_hook_kind.  Safe
 * while another thread changes the entry. */
bool session_hook_spans(const struct ss_journal_hook *h, uint64_t pc, uint32_t *kind);

/* Return: the journal's state in words. */
const char *session_state_text(uint32_t state);

#endif
