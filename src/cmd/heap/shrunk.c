/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * libelf reads the target's files through mappings, and their owner can truncate them at any
 * moment.  The SIGBUS handler maps zeros in place of a missing page, which the ELF readers reject.
 * Otherwise memprof would be killed with the target still patched.
 */
#include "cmd/heap/shrunk.h"

#include <signal.h>
#include <stdint.h>
#include <sys/mman.h>

#define PAGE 4096ull

static void on_bus(int sig, siginfo_t *info, void *context)
{
	uintptr_t page = (uintptr_t)info->si_addr & ~(PAGE - 1);

	(void)context;
	if (info->si_code != BUS_ADRERR ||
	    mmap((void *)page, PAGE, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
		signal(sig, SIG_DFL);
}

void survive_shrunk_files(void)
{
	struct sigaction act = {.sa_sigaction = on_bus, .sa_flags = SA_SIGINFO};

	sigaction(SIGBUS, &act, NULL);
}
