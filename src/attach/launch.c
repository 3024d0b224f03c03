/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Starts a program and stops it when its libraries are mapped and relocated but none of its code,
 * constructors included, has run.  At that point glibc's dynamic linker calls _dl_debug_state()
 * with r_state RT_CONSISTENT (link.h); with other linkers the entry point is used.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <link.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>
#include "attach/breakpoint.h"
#include "attach/proc/map_file.h"
#include "attach/target.h"
#include "formats/column.h"
#include "lib/debuginfod_urls.h"

static pid_t spawn(char *const argv[], int *go, int *failed)
{
	int start[2], error[2];
	char c;
	pid_t pid;

	if (pipe2(start, O_CLOEXEC))
		return -errno;
	if (pipe2(error, O_CLOEXEC)) {
		close(start[0]);
		close(start[1]);
		return -errno;
	}
	pid = fork();
	if (pid == 0) {
		close(start[1]);
		if (read(start[0], &c, 1) != 1) /* the tracer has ended */
			_exit(127);
		debuginfod_urls_restore();
		execvp(argv[0], argv);
		if (write(error[1], &errno, sizeof(errno)) < 0)
			_exit(126);
		_exit(127);
	}
	close(start[0]);
	close(error[1]);
	*go = start[1];
	*failed = error[0];
	return pid < 0 ? -errno : pid;
}

static uint64_t auxv(pid_t pid, uint64_t type)
{
	unsigned long pair[2];
	uint64_t value = 0;
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/auxv", proc_of(pid));
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	while (read(fd, pair, sizeof(pair)) == sizeof(pair) && pair[0] != AT_NULL) {
		if (pair[0] == type)
			value = pair[1];
	}
	close(fd);
	return value;
}

/* Value of a dynamic symbol in the file of @map, 0 if there is none. */
static uint64_t symbol(pid_t pid, const struct map *map, const char *name)
{
	uint64_t value = 0;
	Elf_Scn *scn = NULL;
	GElf_Shdr sh;
	int fd = map_open(pid, map);
	Elf *elf;

	if (fd < 0)
		return 0;
	elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
	while (elf && (scn = elf_nextscn(elf, scn))) {
		Elf_Data *data;

		if (!gelf_getshdr(scn, &sh) || sh.sh_type != SHT_DYNSYM || !sh.sh_entsize)
			continue;
		data = elf_getdata(scn, NULL);
		for (size_t i = 0; data && i < sh.sh_size / sh.sh_entsize; i++) {
			GElf_Sym sym;
			const char *s;

			if (!gelf_getsym(data, (int)i, &sym))
				break;
			s = elf_strptr(elf, sh.sh_link, sym.st_name);
			if (s && !strcmp(s, name) && sym.st_shndx != SHN_UNDEF)
				value = sym.st_value;
		}
	}
	elf_end(elf);
	close(fd);
	return value;
}

struct stop_at {
	uint64_t debug_state; /* _dl_debug_state(), 0: use only the entry point */
	uint64_t r_debug;
	uint64_t entry;
};

static struct stop_at where(struct target *t)
{
	struct stop_at s = {.entry = auxv(t->pid, AT_ENTRY)};
	uint64_t base = auxv(t->pid, AT_BASE), a, b;
	const struct map *m;
	struct maps maps;

	if (!base || maps_read(t->pid, &maps))
		return s;
	m = maps_find(&maps, base);
	a = m ? symbol(t->pid, m, "_dl_debug_state") : 0;
	b = m ? symbol(t->pid, m, "_r_debug") : 0;
	if (a && b) {
		s.debug_state = base + a;
		s.r_debug = base + b;
	}
	maps_free(&maps);
	return s;
}

static bool consistent(const struct target *t, uint64_t r_debug)
{
	struct r_debug r;

	return !mem_read(&t->mem, r_debug, &r, sizeof(r)) && r.r_map && r.r_state == RT_CONSISTENT;
}

/* Waits for the next stop.  Return: wait status, or -ESRCH if the program has ended. */
static int next_stop(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, __WALL) < 0) {
		if (errno != EINTR)
			return -errno;
	}
	return WIFSTOPPED(status) ? status : -ESRCH;
}

struct stops {
	struct breakpoint entry, debug_state;
	struct breakpoint back; /* return address of debug_state */
};

static int no_breakpoint(int ret, struct mp_err *err)
{
	return mp_fail(err, MP_EXIT_FAILURE, ret, "no breakpoint can be set: %s", strerror(-ret));
}

/* Finds where a function returns to, at its first instruction.  Return: 0 or a negative errno. */
static int return_address(const struct target *t, const struct thread *th, uint64_t *addr)
{
	if (t->arch->breakpoint.return_on_stack)
		return mem_read(&t->mem, t->arch->regs.get_sp(&th->regs), addr, sizeof(*addr));
	return t->arch->regs.get_column(&th->regs, UW_REG_LR, addr) ? 0 : -ENOSYS;
}

/* Lets the program continue from _dl_debug_state(), with a breakpoint at its end, where the one at
 * its beginning can be set again. */
static int pass(struct target *t, struct thread *th, const struct stop_at *at, struct stops *s)
{
	uint64_t back;
	int ret = breakpoint_hit(t, th, &s->back);

	if (ret > 0) {
		ret = breakpoint_clear(t, &s->back);
		return ret ? ret : breakpoint_set(t, &s->debug_state, at->debug_state);
	}
	if (!ret)
		ret = breakpoint_hit(t, th, &s->debug_state);
	if (ret <= 0)
		return ret;
	ret = return_address(t, th, &back);
	if (!ret)
		ret = breakpoint_clear(t, &s->debug_state);
	return ret ? ret : breakpoint_set(t, &s->back, back);
}

/* Return: 1 if the libraries are mapped, else 0, or a negative errno. */
static int is_there(struct target *t, struct thread *th, const struct stop_at *at,
		    const struct stops *s)
{
	int ret = breakpoint_hit(t, th, &s->entry);

	if (ret || !consistent(t, at->r_debug))
		return ret;
	return breakpoint_hit(t, th, &s->debug_state);
}

static int clear(struct target *t, struct stops *s)
{
	int a = breakpoint_clear(t, &s->entry), b = breakpoint_clear(t, &s->debug_state),
	    c = breakpoint_clear(t, &s->back);

	return a ? a : b ? b : c;
}

/* Runs the program until its libraries are mapped.  Return: 0 when it is stopped at that point. */
static int run_until(struct target *t, struct thread *th, const struct stop_at *at, struct stops *s,
		     struct mp_err *err)
{
	for (int signal = 0, status, ret;;) {
		if (ptrace(PTRACE_CONT, t->pid, 0, signal))
			return -errno;
		status = next_stop(t->pid);
		if (status < 0)
			return mp_fail(err, MP_EXIT_NO_PROCESS, status,
				       "the program ended before its entry point was reached "
				       "(could its libraries not be loaded?)");
		signal = 0;
		if (WSTOPSIG(status) != SIGTRAP || status >> 16) {
			signal = status >> 16 ? 0 : WSTOPSIG(status);
			continue;
		}
		th->regs_valid = false;
		th->state = THREAD_STOPPED;
		if (thread_get_regs(t, th))
			return -ESRCH;
		ret = is_there(t, th, at, s);
		if (!ret)
			ret = pass(t, th, at, s);
		else if (ret > 0)
			return 0;
		if (ret)
			return no_breakpoint(ret, err);
	}
}

static int run_to(struct target *t, struct thread *th, struct mp_err *err)
{
	struct stops s = {0};
	struct stop_at at = where(t);
	int status, ret;

	ret = breakpoint_set(t, &s.entry, at.entry);
	if (!ret && at.debug_state)
		ret = breakpoint_set(t, &s.debug_state, at.debug_state);
	if (ret)
		return no_breakpoint(ret, err);
	ret = run_until(t, th, &at, &s, err);
	if (ret)
		return ret;
	ret = clear(t, &s);
	if (ret)
		return no_breakpoint(ret, err);
	/* Go to a PTRACE_INTERRUPT stop without executing an instruction. */
	if (ptrace(PTRACE_INTERRUPT, t->pid, 0, 0) || ptrace(PTRACE_CONT, t->pid, 0, 0))
		return -errno;
	status = next_stop(t->pid);
	th->regs_valid = false;
	return status < 0 ? status : 0;
}

int target_launch(struct target *t, char *const argv[], struct mp_err *err)
{
	int go = -1, failed = -1, error = 0, status, ret;
	struct thread *th;
	pid_t pid;

	memset(t, 0, sizeof(*t));
	t->pidfd = t->mem.fd = -1;
	pid = spawn(argv, &go, &failed);
	if (pid < 0)
		return mp_fail(err, MP_EXIT_FAILURE, pid, "cannot start a process: %s",
			       strerror(-pid));
	ret = ptrace(PTRACE_SEIZE, pid, 0, PTRACE_O_TRACEEXEC | PTRACE_O_TRACESYSGOOD) ? -errno : 0;
	if (!ret && write(go, "", 1) != 1)
		ret = -errno;
	close(go);
	status = ret ? ret : next_stop(pid);
	if (read(failed, &error, sizeof(error)) != sizeof(error))
		error = 0;
	close(failed);
	if (error)
		return mp_fail(err, MP_EXIT_USAGE, -error, "cannot run %s: %s", argv[0],
			       strerror(error));
	if (ret)
		return mp_fail(err, MP_EXIT_PERMISSION, ret, "cannot trace %s: %s", argv[0],
			       strerror(-ret));
	if (status < 0 || status >> 16 != PTRACE_EVENT_EXEC)
		return mp_fail(err, MP_EXIT_NO_PROCESS, -ESRCH, "%s ended at once", argv[0]);
	ret = target_look(t, pid, err);
	if (!ret) {
		th = calloc(1, sizeof(*th));
		if (!th || vec_push(&t->threads, th)) {
			free(th);
			ret = -ENOMEM;
		} else {
			th->tid = pid;
			t->stopped_at_ns = mono_ns();
			ret = run_to(t, th, err);
		}
	}
	if (ret) {
		kill(pid, SIGKILL);
		waitpid(pid, NULL, __WALL);
		target_close(t);
		return ret;
	}
	t->mem.tid = pid;
	return 0;
}
