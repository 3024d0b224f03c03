/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * In the build with fault points this is included before every file of attach/ and inject/ (see the
 * Makefile): each of their system calls and allocations is a place named FILE:LINE that
 * MEMPROF_FAIL can make fail once, with an errno that the kernel has for it.
 */
#ifndef LIB_FAULT_CALLS_H
#define LIB_FAULT_CALLS_H

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
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

#define malloc(...)	       FAULT_CALL(NULL, ENOMEM, malloc(__VA_ARGS__))
#define calloc(...)	       FAULT_CALL(NULL, ENOMEM, calloc(__VA_ARGS__))
#define realloc(...)	       FAULT_CALL(NULL, ENOMEM, realloc(__VA_ARGS__))
#define reallocarray(...)      FAULT_CALL(NULL, ENOMEM, reallocarray(__VA_ARGS__))
#define fopen(...)	       FAULT_CALL(NULL, EMFILE, fopen(__VA_ARGS__))
#define opendir(...)	       FAULT_CALL(NULL, EMFILE, opendir(__VA_ARGS__))
#define open(...)	       FAULT_CALL(-1, EMFILE, open(__VA_ARGS__))
#define read(...)	       FAULT_CALL(-1, EIO, read(__VA_ARGS__))
#define pread(...)	       FAULT_CALL(-1, EIO, pread(__VA_ARGS__))
#define pwrite(...)	       FAULT_CALL(-1, EIO, pwrite(__VA_ARGS__))
#define process_vm_readv(...)  FAULT_CALL(-1, EFAULT, process_vm_readv(__VA_ARGS__))
#define process_vm_writev(...) FAULT_CALL(-1, EFAULT, process_vm_writev(__VA_ARGS__))
#define mmap(...)	       FAULT_CALL(MAP_FAILED, ENOMEM, mmap(__VA_ARGS__))
#define madvise(...)	       FAULT_CALL(-1, EFAULT, madvise(__VA_ARGS__))
#define ftruncate(...)	       FAULT_CALL(-1, EFBIG, ftruncate(__VA_ARGS__))
#define fcntl(...)	       FAULT_CALL(-1, EINVAL, fcntl(__VA_ARGS__))
#define ioctl(...)	       FAULT_CALL(-1, EINVAL, ioctl(__VA_ARGS__))
#define readlink(...)	       FAULT_CALL(-1, EACCES, readlink(__VA_ARGS__))
#define syscall(...)	       FAULT_CALL(-1, EPERM, syscall(__VA_ARGS__))
/* A thread that stands can always be let go. */
#define ptrace(request, ...)                                                                       \
	((request) == PTRACE_DETACH ? ptrace(request, __VA_ARGS__)                                 \
				    : FAULT_CALL(-1, ESRCH, ptrace(request, __VA_ARGS__)))

#endif
