/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* /proc of a target.  The parsers are pure functions over text, each beside the function that opens
 * the file. */
#ifndef ATTACH_PROC_PROCFS_H
#define ATTACH_PROC_PROCFS_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "lib/check.h"
#include "lib/vec.h"

/**
 * proc_of() - the id under which /proc shows memory, files and mappings of process @pid
 *
 * Return: @pid; or if its main thread has ended and others are alive, the id of one of those.
 * /proc/PID is empty in that case, and the kernel provides /proc/TID though it does not list it.
 */
pid_t proc_of(pid_t pid);

/* Opens a file of /proc for reading.  Return: descriptor, -ESRCH if it does not exist, or another
 * -errno. */
__must_check int proc_open(const char *path);
/* Reads an open file of /proc to its end.  Return: 0 with @text to be freed and ended by a NUL, and
 * its length without the NUL in @length (can be NULL); or -errno. */
__must_check int proc_slurp(int fd, char **text, size_t *length);

struct proc_status {
	char name[17], state;
	pid_t tgid, ppid, tracer;
	uint32_t threads;
	int nstgid;	  /* levels in NSpid: 1 = same pid namespace */
	pid_t ns_pid;	  /* pid inside its innermost namespace */
	int seccomp;	  /* 0: off, 1: strict, 2: filter */
	uint32_t filters; /* number of seccomp filters; 0 before Linux 5.9 */
	bool no_new_privs;
	uint64_t sig_pending, shared_pending, sig_blocked, sig_ignored, sig_caught;
	uint64_t cap_effective, vm_locked_kb;
	uint32_t uid, gid;
	bool no_memory; /* kernel thread or exiting process; false for a zombie */
};
__must_check int proc_status_parse(const char *text, struct proc_status *st);
/* @tid 0: the process.  Return: 0 or -errno. */
__must_check int proc_status_read(pid_t pid, pid_t tid, struct proc_status *st);

/* Field 22 of /proc/PID/stat (start time in clock ticks): distinguishes processes with a reused
 * pid.  Return: 0 on error and for a process that has ended. */
uint64_t proc_start_time(pid_t pid);

/* Thread ids in /proc/PID/task at one moment. */
struct tids {
	VEC(pid_t) list;
};
__must_check int proc_tasks(pid_t pid, struct tids *tids);
/* Children of all threads of @pid, zombies included.  Return: 0 with @children to be freed, or
 * -errno. */
__must_check int proc_children(pid_t pid, struct tids *children);

/* VmRSS and similar fields of /proc/PID/status in bytes.  Cheap, but before Linux 6.2 inaccurate by
 * up to 64 pages per thread.  Return: 0 or -errno. */
struct proc_memory {
	uint64_t rss, anonymous, file, swap, address_space;
};
__must_check int proc_memory_read(pid_t pid, struct proc_memory *m);
/* The sums of /proc/PID/smaps_rollup in bytes; the kernel visits every page for them.  @huge: the
 * part of @anonymous in huge pages.  Return: 0 or -errno. */
struct proc_rollup {
	uint64_t rss, anonymous, huge, swap;
};
__must_check int proc_rollup_read(pid_t pid, struct proc_rollup *r);

/* Of the whole machine, see proc(5), /proc/loadavg.  0: the kernel does not report it. */
struct proc_load {
	uint32_t running; /* threads that run or wait for a processor, memprof's own included */
	pid_t newest;	  /* the process or thread that was created last */
};
struct proc_load proc_load_read(void);

/* argv joined by blanks (quoted where needed), at most @size bytes.  Return: 0 or -errno. */
__must_check int proc_cmdline(pid_t pid, char *buf, size_t size);
/* Target of the link /proc/PID/exe. */
__must_check int proc_exe(pid_t pid, char *buf, size_t size);
/* The file name by which the program @exe (of proc_exe()) was called, if it is a link to @exe:
 * redis-server, which is a link to redis-check-rdb.  Return: true with @buf set; false if it is the
 * name of @exe itself, or unknown. */
bool proc_called(pid_t pid, const char *exe, char *buf, size_t size);

/* The program of a process. */
struct proc_program {
	char executable[PATH_MAX]; /* of proc_exe(); "": unknown */
	char called[64]; /* of proc_called(); "": the name of the executable, or unknown */
};
void proc_program_read(pid_t pid, struct proc_program *p);

#endif
