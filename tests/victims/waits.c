/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Waits for its children in every form that exists, in a loop until the end of stdin.  If a wait
 * shows a process that is not its child, prints "saw FORM RESULT".  Prints "ok" at the end.
 *
 *	none	it has no children: every form must fail with ECHILD
 *	plain	the same, with only the forms without __WALL and __WCLONE
 *	some	one child lives until the end; it makes others, one by one, and waits for each
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define BLOCKS 200000 /* so many that reading them takes memprof a while */

static volatile sig_atomic_t stranger;
static volatile pid_t own;
static sigset_t sigchld;

static void on_child(int sig, siginfo_t *info, void *context)
{
	(void)sig;
	(void)context;
	if (info->si_pid != own)
		stranger = info->si_pid;
}

static const struct form {
	const char *name;
	int options;
	idtype_t type; /* of waitid() */
	pid_t pid;     /* of wait4() */
	bool id, plain;
} forms[] = {
    {"wait4(-1)", 0, 0, -1, false, true},
    {"wait4(-1, WNOHANG)", WNOHANG, 0, -1, false, true},
    {"wait4(0)", 0, 0, 0, false, true},
    {"wait4(0, WNOHANG|WUNTRACED|WCONTINUED)", WNOHANG | WUNTRACED | WCONTINUED, 0, 0, false, true},
    {"wait4(-1, WNOHANG|__WALL)", WNOHANG | __WALL, 0, -1, false, false},
    {"wait4(-1, WNOHANG|__WCLONE)", WNOHANG | __WCLONE, 0, -1, false, false},
    {"wait4(0, WNOHANG|__WALL)", WNOHANG | __WALL, 0, 0, false, false},
    {"wait4(-1, __WALL)", __WALL, 0, -1, false, false},
    {"wait4(-1, __WCLONE)", __WCLONE, 0, -1, false, false},
    {"wait4(-1, __WALL|__WNOTHREAD)", __WALL | __WNOTHREAD, 0, -1, false, false},
    {"waitid(P_ALL)", WEXITED | WNOHANG, P_ALL, 0, true, true},
    {"waitid(P_PGID)", WEXITED | WSTOPPED | WNOHANG, P_PGID, 0, true, true},
    {"waitid(P_ALL, WNOWAIT|__WALL)", WEXITED | WNOHANG | WNOWAIT | __WALL, P_ALL, 0, true, false},
    {"waitid(P_PGID, WNOWAIT|__WALL)", WEXITED | WSTOPPED | WNOHANG | WNOWAIT | __WALL, P_PGID, 0,
     true, false},
    {"waitid(P_ALL, __WCLONE)", WEXITED | WNOHANG | __WCLONE, P_ALL, 0, true, false},
};
#define FORMS (sizeof(forms) / sizeof(forms[0]))

static void say(const char *form, long result)
{
	printf("saw %s %ld %s\n", form, result, result < 0 ? strerror(errno) : "");
	fflush(stdout);
}

static void wait_for_none(const struct form *f)
{
	siginfo_t info = {0};
	struct rusage usage;
	int status, ret;

	errno = 0;
	ret = f->id ? waitid(f->type, (id_t)getpgrp(), &info, f->options)
		    : wait4(f->pid, &status, f->options, &usage);
	if (ret != -1 || errno != ECHILD)
		say(f->name, f->id && !ret ? info.si_pid : ret);
}

static void wait_for_some(const struct form *f, int code)
{
	siginfo_t info = {0};
	struct rusage usage = {0};
	int status = 0, ret;

	/* Block SIGCHLD until @own is set, which the handler reads. */
	sigprocmask(SIG_BLOCK, &sigchld, NULL);
	own = fork();
	if (!own)
		_exit(code);
	sigprocmask(SIG_UNBLOCK, &sigchld, NULL);
	/* Since one child lives on, no form may fail; none may see a process other than @own. */
	do {
		ret = f->id ? waitid(f->type, (id_t)getpgrp(), &info, f->options & ~WNOWAIT)
			    : wait4(f->pid, &status, f->options & ~__WCLONE, &usage);
	} while (!(f->id ? ret || info.si_pid : ret));
	if (f->id && (ret || info.si_pid != own || info.si_status != code))
		say(f->name, ret ? ret : info.si_pid);
	if (!f->id && (ret != own || !WIFEXITED(status) || WEXITSTATUS(status) != code))
		say(f->name, ret);
}

static bool ends(void)
{
	struct pollfd in = {.fd = 0, .events = POLLIN};

	return poll(&in, 1, 0) > 0;
}

int main(int argc, char **argv)
{
	struct sigaction act = {.sa_sigaction = on_child, .sa_flags = SA_SIGINFO | SA_RESTART};
	const char *mode = argc > 1 ? argv[1] : "none";
	bool some = !strcmp(mode, "some"), plain = !strcmp(mode, "plain");
	void **kept = calloc(BLOCKS, sizeof(*kept));
	pid_t living = 0;

	for (int i = 0; kept && i < BLOCKS; i++)
		kept[i] = malloc(40);
	if (some) {
		living = fork();
		if (!living) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			pause();
			_exit(0);
		}
	}
	sigaction(SIGCHLD, &act, NULL);
	sigemptyset(&sigchld);
	sigaddset(&sigchld, SIGCHLD);
	puts("ready");
	fflush(stdout);
	for (int code = 1; !ends(); code = code % 100 + 1) {
		for (size_t i = 0; i < FORMS; i++) {
			if (!some && (!plain || forms[i].plain))
				wait_for_none(&forms[i]);
			else if (some && !(forms[i].options & __WCLONE))
				wait_for_some(&forms[i], code);
		}
		if (stranger) {
			say("SIGCHLD", stranger);
			stranger = 0;
		}
	}
	if (living) {
		own = living;
		kill(living, SIGKILL);
		if (waitpid(living, NULL, 0) != living)
			say("the end", -1);
	}
	puts("ok");
	return 0;
}
