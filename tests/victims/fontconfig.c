/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Keeps structures of the system's fontconfig, which has offsets in place of pointers:
 *
 *	fontconfig LEAKS
 *
 * A pattern with a text and a set of characters of 40 pages, and another such set by itself; both grew, so their
 * arrays moved.  LEAKS more patterns, of one text each, are forgotten.  Prints "ready"; at SIGTERM prints "ok" and
 * exits 0 if what it keeps is complete.
 */
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PAGES	40
#define NUMBERS 20 /* further elements, so that the pattern grows beyond its first 16 */

static void *library;
static void *kept_pattern, *kept_set;
static volatile sig_atomic_t ended;

static void *(*create_pattern)(void), *(*create_set)(void);
static int (*add_text)(void *, const char *, const unsigned char *);
static int (*add_number)(void *, const char *, int);
static int (*add_set)(void *, const char *, const void *);
static int (*get_text)(const void *, const char *, int, unsigned char **);
static int (*add_character)(void *, unsigned int);
static unsigned int (*count)(const void *);
static void (*destroy_set)(void *);

static void on_term(int sig)
{
	(void)sig;
	ended = 1;
}

static void *function(const char *name)
{
	void *f = dlsym(library, name);

	if (!f) {
		fprintf(stderr, "no %s\n", name);
		exit(2);
	}
	return f;
}

static void load(void)
{
	library = dlopen("libfontconfig.so.1", RTLD_NOW);
	if (!library) {
		fprintf(stderr, "%s\n", dlerror());
		exit(2);
	}
	*(void **)&create_pattern = function("FcPatternCreate");
	*(void **)&create_set = function("FcCharSetCreate");
	*(void **)&add_text = function("FcPatternAddString");
	*(void **)&add_number = function("FcPatternAddInteger");
	*(void **)&add_set = function("FcPatternAddCharSet");
	*(void **)&get_text = function("FcPatternGetString");
	*(void **)&add_character = function("FcCharSetAddChar");
	*(void **)&count = function("FcCharSetCount");
	*(void **)&destroy_set = function("FcCharSetDestroy");
}

static void *new_set(void)
{
	void *set = create_set();

	for (unsigned int i = 0; i < PAGES; i++)
		add_character(set, 256 * i + i);
	return set;
}

static void keep(void)
{
	void *set = new_set();
	char name[16];

	kept_pattern = create_pattern();
	for (int i = 0; i < NUMBERS; i++) {
		snprintf(name, sizeof(name), "number%d", i);
		add_number(kept_pattern, name, i);
	}
	add_text(kept_pattern, "family", (const unsigned char *)"kept");
	add_set(kept_pattern, "charset", set);
	destroy_set(set); /* the pattern has it */
	kept_set = new_set();
}

static __attribute__((noinline)) void forget(long n)
{
	while (n--)
		add_text(create_pattern(), "family", (const unsigned char *)"lost");
}

static __attribute__((noinline)) void clear_stack(void)
{
	volatile char old[16384];

	memset((char *)old, 0, sizeof(old));
}

int main(int argc, char **argv)
{
	const struct sigaction sa = {.sa_handler = on_term};
	unsigned char *text;

	alarm(600); /* end even if the test has died */
	sigaction(SIGTERM, &sa, NULL);
	load();
	keep();
	forget(argc > 1 ? atol(argv[1]) : 1);
	/* The last one must not be found in a register or a dead frame. */
	destroy_set(new_set());
	clear_stack();
	puts("ready");
	fflush(stdout);
	while (!ended)
		pause();
	if (get_text(kept_pattern, "family", 0, &text) || strcmp((char *)text, "kept") != 0 ||
	    count(kept_set) != PAGES)
		return 1;
	puts("ok");
	return 0;
}
