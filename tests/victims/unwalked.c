/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Has a block of glibc's malloc, and the large static tables and the constant by which an allocator
 * without a walker is recognized.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <signal.h>
#include <unistd.h>

static volatile char tables[2 << 20];
static char *volatile block;
static const char constant[] = CONSTANT;

int main(void)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	block = malloc(100);
	if (!block)
		return 1;
	snprintf(block, 100, "%s", constant);
	for (size_t i = 0; i < sizeof(tables); i += 4096)
		tables[i] = 1;
	puts("ready");
	fflush(stdout);
	for (;;)
		pause();
}
