/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * In a build with fault points this is included before every file of attach/, inject/, leaks/,
 * record/, formats/ and cmd/ and some of lib/ (see the Makefile).  It makes each of their system
 * calls and allocations a place named FILE:LINE, which MEMPROF_FAIL can make fail once, with a
 * typical errno of that call.
 */
#ifndef LIB_FAULT_CALLS_H
#define LIB_FAULT_CALLS_H

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <libelf.h>
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>
#include "lib/fault.h"

#define FAULT_TEXT_(x) #x
#define FAULT_TEXT(x)  FAULT_TEXT_(x)
#define FAULT_CALL(failed, error, call)                                                            \
	({                                                                                         \
		static atomic_long fault_passed;                                                   \
		fault_call(__FILE__ ":" FAULT_TEXT(__LINE__), &fault_passed)                       \
		    ? (errno = (error), (failed))                                                  \
		    : (call);                                                                      \
	})

#define malloc(...)	  FAULT_CALL(NULL, ENOMEM, malloc(__VA_ARGS__))
#define calloc(...)	  FAULT_CALL(NULL, ENOMEM, calloc(__VA_ARGS__))
#define realloc(...)	  FAULT_CALL(NULL, ENOMEM, realloc(__VA_ARGS__))
#define reallocarray(...) FAULT_CALL(NULL, ENOMEM, reallocarray(__VA_ARGS__))
#define strdup(...)	  FAULT_CALL(NULL, ENOMEM, strdup(__VA_ARGS__))
#define strndup(...)	  FAULT_CALL(NULL, ENOMEM, strndup(__VA_ARGS__))
#define elf_begin(...)	  FAULT_CALL(NULL, ENOMEM, elf_begin(__VA_ARGS__))
#define fdopen(...)	  FAULT_CALL(NULL, ENOMEM, fdopen(__VA_ARGS__))
#define fopen(...)	  FAULT_CALL(NULL, EMFILE, fopen(__VA_ARGS__))
#define opendir(...)	  FAULT_CALL(NULL, EMFILE, opendir(__VA_ARGS__))
#define open(...)	  FAULT_CALL(-1, EMFILE, open(__VA_ARGS__))
#define openat(...)	  FAULT_CALL(-1, EMFILE, openat(__VA_ARGS__))
#define pipe2(...)	  FAULT_CALL(-1, EMFILE, pipe2(__VA_ARGS__))
#define fork()		  FAULT_CALL(-1, EAGAIN, fork())
#define socket(...)	  FAULT_CALL(-1, EMFILE, socket(__VA_ARGS__))
#define bind(...)	  FAULT_CALL(-1, EADDRINUSE, bind(__VA_ARGS__))
#define listen(...)	  FAULT_CALL(-1, EADDRINUSE, listen(__VA_ARGS__))
#define connect(...)	  FAULT_CALL(-1, ECONNREFUSED, connect(__VA_ARGS__))
#define accept4(...)	  FAULT_CALL(-1, EMFILE, accept4(__VA_ARGS__))
#define send(...)	  FAULT_CALL(-1, EPIPE, send(__VA_ARGS__))
#define signalfd(...)	  FAULT_CALL(-1, EMFILE, signalfd(__VA_ARGS__))
#define getrandom(...)	  FAULT_CALL(-1, ENOSYS, getrandom(__VA_ARGS__))
/* pthread_create() returns the errno. */
#define pthread_create(...)    FAULT_CALL(EAGAIN, EAGAIN, pthread_create(__VA_ARGS__))
#define write(...)	       FAULT_CALL(-1, ENOSPC, write(__VA_ARGS__))
#define fstat(...)	       FAULT_CALL(-1, ENOMEM, fstat(__VA_ARGS__))
#define read(...)	       FAULT_CALL(-1, EIO, read(__VA_ARGS__))
#define pread(...)	       FAULT_CALL(-1, EIO, pread(__VA_ARGS__))
#define pwrite(...)	       FAULT_CALL(-1, EIO, pwrite(__VA_ARGS__))
#define process_vm_readv(...)  FAULT_CALL(-1, EFAULT, process_vm_readv(__VA_ARGS__))
#define process_vm_writev(...) FAULT_CALL(-1, EFAULT, process_vm_writev(__VA_ARGS__))
#define mmap(...)	       FAULT_CALL(MAP_FAILED, ENOMEM, mmap(__VA_ARGS__))
#define mremap(...)	       FAULT_CALL(MAP_FAILED, ENOMEM, mremap(__VA_ARGS__))
#define madvise(...)	       FAULT_CALL(-1, EFAULT, madvise(__VA_ARGS__))
#define ftruncate(...)	       FAULT_CALL(-1, EFBIG, ftruncate(__VA_ARGS__))
#define fcntl(...)	       FAULT_CALL(-1, EINVAL, fcntl(__VA_ARGS__))
#define ioctl(...)	       FAULT_CALL(-1, EINVAL, ioctl(__VA_ARGS__))
#define readlink(...)	       FAULT_CALL(-1, EACCES, readlink(__VA_ARGS__))
#define syscall(...)	       FAULT_CALL(-1, EPERM, syscall(__VA_ARGS__))
/* PTRACE_DETACH is never made to fail: detaching a stopped thread always succeeds. */
#define ptrace(request, ...)                                                                       \
	((request) == PTRACE_DETACH ? ptrace(request, __VA_ARGS__)                                 \
				    : FAULT_CALL(-1, ESRCH, ptrace(request, __VA_ARGS__)))

#endif
