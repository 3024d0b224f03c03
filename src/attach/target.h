/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A process under memprof's control: check, seize, stop, injected system calls, resume, release.
 * Read attach-hazards in doc/safety.md first.  Order of calls:
 *
 *	target_look()	 checks and refuses; changes nothing
 *	target_seize()	 all threads seized, still running
 *	target_stop()	 all threads stopped
 *	  thread_get_regs(), remote_begin(), remote_syscall(), remote_end(), mem_write()
 *	target_run()	 all threads run for a moment, still seized
 *	target_release() ends the tracing; resumes stopped threads
 */
#ifndef ATTACH_TARGET_H
#define ATTACH_TARGET_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "arch/arch.h"
#include "attach/mem.h"
#include "attach/proc/maps.h"
#include "attach/proc/procfs.h"
#include "lib/check.h"
#include "lib/deadline.h"
#include "lib/err.h"
#include "lib/vec.h"

enum thread_state {
	THREAD_RUNNING,
	THREAD_STOPPED,	      /* by PTRACE_INTERRUPT */
	THREAD_GROUP_STOPPED, /* job control stop: stays stopped after release */
	THREAD_IN_VFORK,      /* waits in the kernel for its vfork child; no registers */
	THREAD_GONE,
};

struct thread {
	pid_t tid;
	enum thread_state state;
	bool regs_valid;
	struct arch_regs regs; /* by thread_get_regs() */
	bool interrupt_sent; /* it must stop by PTRACE_INTERRUPT, whatever other stop comes first */
	bool lent;	     /* executed injected system calls since this stop */
	bool keep;	     /* for target_run_kept(), target_release_others() */
};

/* Code sequences in the target's files, found by emergency_find(). */
struct target_code {
	uint64_t syscall_return, sigreturn;
	uint8_t sigreturn_form;
	bool other_form;     /* syscall_return is arch.emergency.other_return */
	uint8_t return_pops; /* bytes that the code at syscall_return pops before it returns */
};

struct target {
	pid_t pid;
	int pidfd;
	const struct arch *arch;
	struct mem mem;
	struct proc_status status; /* from target_look(); seccomp: that of any seized thread */
	VEC(struct thread *) threads;
	VEC(pid_t) late;   /* see target_release_late() */
	uint64_t begun_ns; /* CLOCK_MONOTONIC when the program began by exec; 0: with the process */
	uint64_t stopped_at_ns; /* CLOCK_MONOTONIC of the first interrupt */
	uint64_t last_stop_ns;	/* duration of the last stop */
	bool execed;		/* an exec was seen: the process has another address space */
	bool exited;
	bool some_only;		/* set by target_seize_one(), target_release_others() */
	uint32_t filters_asked; /* see seccomp_forbids() */
	struct target_code code;
	struct steps *steps; /* for --debug; NULL: none.  target_close() frees it. */
	struct maps maps;    /* cache of target_maps() */
	bool maps_known;
};

/**
 * target_look() - check that memprof can attach to @pid, and open it; changes nothing
 *
 * Refuses, each with its own exit status and one line that helps: no such process, no permission
 * (with the reason, ptrace_scope, capability or user namespace, and what would help), kernel
 * thread, zombie, traced (with the tracer's name), another architecture.
 * Return: 0 with @t ready for target_seize(), or a negative errno with @err filled.
 */
__must_check int target_look(struct target *t, pid_t pid, struct mp_err *err);

/* Searches for a process that shares the memory of @t but is not one of its threads (clone() with
 * CLONE_VM) and would not stop with them.  A vfork() child that its parent waits for does not
 * count.  Return: its pid, or 0. */
pid_t target_sharer(const struct target *t);

/* PTRACE_SEIZE for every thread, until a full pass over /proc/PID/task finds no new one; the kernel
 * seizes new threads of seized ones (PTRACE_O_TRACECLONE).  Threads keep running.  A process cannot
 * be seized while it is in execve(): after @deadline memprof gives up (-ETIMEDOUT). */
__must_check int target_seize(struct target *t, const struct deadline *deadline,
			      struct mp_err *err);

/* Like target_seize() for one thread only, until target_release().  The other threads keep running,
 * also during target_stop(). */
__must_check int target_seize_one(struct target *t, struct mp_err *err);
/* Like target_seize_one() for thread @tid. */
__must_check int target_seize_thread(struct target *t, pid_t tid, struct mp_err *err);

/* PTRACE_INTERRUPT of all threads, and wait for their stops.  On failure all threads are resumed
 * and released: the deadline has passed (@err has the thread and where it waits in the kernel), the
 * process has ended, or it has executed another program since target_look() (-ESRCH,
 * MP_EXIT_NO_PROCESS). */
__must_check int target_stop(struct target *t, const struct deadline *deadline, struct mp_err *err);

/* Does the process still run the program that target_look() found, as far as can be seen?  It need
 * not be stopped.  Return: 0, or -ESRCH with @err after an execve() or its end. */
int target_check_program(const struct target *t, struct mp_err *err);

/**
 * target_ask_again() - find out whether an operation failed because the process ended or called
 * execve()
 * @t: after target_look(), not closed
 * @error, @err: the failure; replaced if that was the reason
 *
 * Waits some milliseconds until the end of a killed process becomes visible; after -ESRCH up to 2 s, because the
 * threads of a killed process end only when they get a processor.  The process must not be stopped.
 * Return: @error, or -ESRCH.
 */
int target_ask_again(const struct target *t, int error, struct mp_err *err);

/**
 * target_maps() - mappings of the stopped target @t
 * Reads them once per stop (65,000 mappings take about 30 ms), and again after the target has
 * changed them by remote_syscall().
 * @maps: set to the mappings, which @t owns; valid until the next such call or stop
 * Return: as maps_read().
 */
__must_check int target_maps(struct target *t, const struct maps **maps);
/* Drops the cached mappings because the target has changed them. */
void target_maps_changed(struct target *t);

/* Reads the registers of a stopped thread, once per stop.  Return: 0 or -errno. */
__must_check int thread_get_regs(struct target *t, struct thread *th);
/* Return: thread pointer of a stopped thread whose registers were read; 0: unknown. */
uint64_t thread_get_tp(const struct target *t, const struct thread *th);
/* Is @addr on the stack that the C library, or for the main thread the kernel, made for the stopped
 * thread?  Its registers must have been read. */
bool thread_owns_stack(const struct target *t, const struct thread *th, const struct maps *maps,
		       uint64_t addr);
/* Writes registers at once, not when the thread resumes: if memprof is killed between two steps,
 * the target is still in a consistent state.  Return: 0 or -errno. */
__must_check int thread_put_regs(struct target *t, struct thread *th, const struct arch_regs *regs);

/* Explains why ptrace or /proc failed with @error: which process traces the target, or which
 * permission is missing and what would help.  Return: a negative errno, @err filled. */
__must_check int target_refused(const struct target *t, int error, struct mp_err *err);

/*
 * Lets the stopped threads run for @us microseconds, still seized.  Threads that stop during that
 * time, for a signal or because they made a new thread, are continued at once.  Otherwise they
 * would stay stopped until the next target_stop(), and a thread that constantly receives signals
 * would never get beyond the start of its handler.  For longer times use target_release().
 */
void target_run(struct target *t, uint32_t us);
/**
 * target_run_kept() - let some threads of the stopped target run, within the same stop
 *
 * Threads that are marked keep run; the other threads stay stopped and leave them the processors.
 * A thread is stopped again, and its mark cleared, when @busy(@ctx, thread) is false.  All are
 * stopped when no marked thread is left or after @us microseconds.
 * @deadline: for stopping them
 * Return: 0 with all threads stopped; otherwise as target_stop().
 */
__must_check int target_run_kept(struct target *t, uint32_t us,
				 bool (*busy)(const void *ctx, const struct thread *th),
				 const void *ctx, const struct deadline *deadline,
				 struct mp_err *err);
/* Releases the stopped threads that are not marked keep.  Until target_release(), target_run() and
 * target_stop() apply only to the marked ones. */
void target_release_others(struct target *t);
/* Lets the next target_stop() stop the released threads too; the others stay as they are. */
void target_include_others(struct target *t);
void target_release(struct target *t); /* PTRACE_DETACH of every thread; job control stops remain */
/*
 * Releases threads that are still traced although target_release() was called, as far as they have
 * stopped by now.  These are threads that did not stop (a long vfork(), a disk that does not
 * answer, a busy machine) or were being killed at that moment, and children that were forked while
 * their parent was traced and have not reached their first stop yet.  Unreleased, they would stay
 * at their next stop or as partly dead threads.  A caller that continues after target_release()
 * must call this several times a second.  Return: how many are left.
 */
uint32_t target_release_late(struct target *t);
void target_close(struct target *t); /* releases if needed, frees all memory */

/* Do all threads of the stopped target wait in vfork(), so that none can make system calls for
 * memprof?  One that has returned, but meets a signal before it stops, still counts. */
bool target_in_vfork(const struct target *t);

/*
 * Injected system calls; the target must be stopped.  remote_begin() chooses a carrier thread (one
 * in user mode rather than one in an interrupted system call; never one in D state) and blocks its
 * signals.  If all threads wait in vfork(), it waits up to 2 s for one to return.  remote_end()
 * restores the thread, including the interrupted system call.  If memprof is killed in between, the
 * carrier restores itself by rt_sigreturn (attach/emergency.h); if a filter forbids rt_sigreturn,
 * remote_begin() fails (-EACCES).
 */
struct remote {
	struct target *t;
	struct thread *carrier;
	struct arch_regs saved;
	uint64_t sigmask[2]; /* only arch.syscall.sigset_size bytes are used */
	long before;  /* number of the call it was about to execute, or -1 (syscall.before) */
	bool goes_on; /* the kernel continues that call by restart_syscall (change_number) */
	/* private to attach/remote.c and emergency.c */
	uint8_t *scratch; /* original bytes below the carrier's stack */
	uint64_t scratch_addr;
	size_t scratch_len;
	uint64_t frame;
	bool active;
	int failed;	/* error of an earlier call, which may or may not have been executed */
	int last_event; /* PTRACE_EVENT_CLONE ... seen during the last call */
	unsigned long event_message;
	uint64_t wait_ms; /* per call; remote_begin()'s default suffices for all but clone() */
	bool filtered;	  /* check each call against the carrier's seccomp filters first */
};
__must_check int remote_begin(struct remote *r, struct target *t, struct mp_err *err);
/* Like remote_begin() with @th as the carrier.  @maps: mappings, read after @th was created.  An injected call
 * needs some memory below the stack pointer.  It is free only on the stack that the C library made for the thread.
 * Return: also -EBUSY: @th is on another stack, its stack has no room, or it can make no calls now. */
__must_check int remote_begin_in(struct remote *r, struct target *t, struct thread *th,
				 const struct maps *maps, struct mp_err *err);
/* Injects a system call.  @result: its result (value or -errno).
 * Return: 0 or -errno; -EACCES if a seccomp filter of the carrier does not allow the call, or
 * cannot be read, and the call was not made. */
__must_check int remote_syscall(struct remote *r, long nr, const uint64_t args[6], long *result);
/* Like remote_syscall().  Calls @at_entry(@ctx) when the carrier is at the entry of the call: from
 * then on the kernel executes the call even if memprof dies. */
__must_check int remote_syscall_at_entry(struct remote *r, long nr, const uint64_t args[6],
					 long *result, void (*at_entry)(void *ctx), void *ctx);
/* Writes a string (at most 200 bytes with its NUL) below the carrier's stack; it stays there until
 * remote_end().  Return: its address in the target, 0 on failure. */
uint64_t remote_string(struct remote *r, const char *text);
__must_check int remote_end(struct remote *r);

/*
 * Do the seccomp filters of the stopped @th allow call @nr with @args (NULL: all 0) made at
 * @insn_addr?  Reads the filters (needs CAP_SYS_ADMIN) and evaluates them.
 * Return: 1 allowed, 0 refused, -errno if the filters cannot be read.
 */
__must_check int seccomp_allows(struct target *t, struct thread *th, long nr,
				const uint64_t args[6], uint64_t insn_addr);

/**
 * target_launch() - start a program and stop it when its libraries are mapped but none of its code
 * has run
 *
 * The child is stopped in the dynamic linker at r_brk with RT_CONSISTENT, or at the entry point of
 * a static program; it is seized and stopped as after target_stop().  No byte of it stays changed.
 * @argv: NULL-terminated; @argv[0] is searched for in PATH.
 */
__must_check int target_launch(struct target *t, char *const argv[], struct mp_err *err);

#endif
