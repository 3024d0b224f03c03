/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Makes memprof's memory in the target: the block with its layout and journal, the agent, the gate.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "attach/sandbox.h"
#include "inject/internal.h"
#include "inject/place.h"
#include "inject/thread_id.h"
#include "lib/fault.h"
#include "attach/steps.h"

int session_remote_map(struct remote *r, uint64_t addr, uint64_t length, int prot, int flags,
		       int fd, uint64_t *result)
{
	uint64_t args[6] = {addr, length, (uint64_t)prot, (uint64_t)flags, (uint64_t)(int64_t)fd,
			    0};
	long ret;
	int err = remote_syscall(r, r->t->arch->nr.mmap, args, &ret);

	if (err)
		return err;
	if (ret < 0 && ret > -4096)
		return (int)ret;
	/* Kernels without MAP_FIXED_NOREPLACE treat the address as a hint. */
	if (addr && (unsigned long)ret != addr) {
		uint64_t back[6] = {(unsigned long)ret, length};

		err = remote_syscall(r, r->t->arch->nr.munmap, back, &ret);
		return err ? err : ret ? (int)ret : -EEXIST;
	}
	*result = (unsigned long)ret;
	return 0;
}

/* Maps the new block, the target's file descriptor @fd, into memprof. */
static int map_here(struct session *s, long fd, uint64_t length)
{
	char path[64];
	int ours, err = 0;

	/* Needs no more permission than ptrace; not available before Linux 5.6. */
	ours = (int)syscall(SYS_pidfd_getfd, s->t->pidfd, (int)fd, 0);
	snprintf(path, sizeof(path), "/proc/%d/fd/%ld", proc_of(s->t->pid), fd);
	if (ours < 0)
		ours = open(path, O_RDWR | O_CLOEXEC);
	if (ours < 0)
		return -errno;
	/* Sealed, so that no process can shrink it and thereby make memprof or the target fault. */
	if (ftruncate(ours, (off_t)length) ||
	    fcntl(ours, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)) {
		err = -errno;
	} else {
		void *p =
		    mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, ours, 0);

		if (p == MAP_FAILED)
			err = -errno;
		else
			s->block = p;
		/* Core dumps of memprof leave it out, too. */
		if (!err)
			madvise(p, length, MADV_DONTDUMP);
	}
	close(ours);
	s->length = length;
	return err;
}

/* Fills in the block before it is mapped in the target, so that another memprof always finds it
 * complete. */
static int fill_block(struct session *s, const struct ss_control *layout,
		      const struct session_options *o, uint64_t agent)
{
	struct ss_control *c = s->block;
	struct ss_journal *j;

	*c = *layout;
	c->magic = SS_MAGIC;
	c->version = SS_VERSION;
	c->arch = s->t->arch->elf_machine;
	s->layout = *c;
	s->shared = (struct ss_journal *)((char *)c + layout->journal);
	j = s->journal = calloc(1, sizeof(*j));
	if (!j)
		return -ENOMEM;
	snprintf(j->recording, sizeof(j->recording), "%s", o->recording ? o->recording : "");
	snprintf(j->control, sizeof(j->control), "%s", o->control ? o->control : "");
	j->state = SS_OPENING;
	j->recorder_pid = getpid();
	j->recorder_start = proc_start_time(getpid());
	j->started_at = (uint64_t)time(NULL);
	j->agent_addr = agent;
	j->agent_length = s->blob.mapped_length + session_private_bytes(c);
	j->gate_addr = agent + s->blob.mapped_length;
	j->session_length = s->length;
	journal_publish(s);
	return 0;
}

/* Bytes that are locked now: after mlockall(MCL_FUTURE) new mappings are locked, too. */
static uint64_t locked(const struct target *t)
{
	struct proc_status st;

	return proc_status_read(t->pid, 0, &st) ? 0 : st.vm_locked_kb * 1024;
}

/* Excludes memory from the target's core dumps, because the kernel would allocate every page of the
 * block in order to write it. */
static int leave_out_of_cores(struct remote *r, uint64_t addr, uint64_t length)
{
	uint64_t args[6] = {addr, length, MADV_DONTDUMP};
	long ret = 0;
	int err = remote_syscall(r, r->t->arch->nr.madvise, args, &ret);

	return err ? err : (int)ret;
}

/* Maps the block in the target.  It becomes accessible only in a second step, so that the kernel
 * does not allocate all of it at once in a process with mlockall(MCL_FUTURE). */
static int map_there(struct remote *r, uint64_t length, int fd, uint64_t *addr)
{
	uint64_t before = locked(r->t), args[6] = {0, length, PROT_READ | PROT_WRITE};
	long ret = 0;
	int err = session_remote_map(r, 0, length, PROT_NONE, MAP_SHARED | MAP_NORESERVE, fd, addr);

	if (err)
		return err;
	args[0] = *addr;
	if (locked(r->t) >= before + length / 2)
		err = remote_syscall(r, r->t->arch->nr.munlock, args, &ret);
	if (!err && !ret)
		err = leave_out_of_cores(r, *addr, length);
	if (!err && !ret)
		err = remote_syscall(r, r->t->arch->nr.mprotect, args, &ret);
	return err ? err : (int)ret;
}

static void code_range(const struct session *s, uint64_t *low, uint64_t *high)
{
	*low = UINT64_MAX;
	*high = 0;
	for (size_t i = 0; i < s->plan.hooks.n; i++) {
		const struct planned_hook *h = &s->plan.hooks.at[i];

		/* The executable can be too far from the libraries' hooks; islands bridge the
		 * distance. */
		*low = h->addr < *low ? h->addr : *low;
		*high = h->addr > *high ? h->addr : *high;
	}
	if (*high - *low > s->t->arch->patch.reach)
		*low = *high;
}

/* A place for @length bytes of the agent, near the hooked functions if possible. */
static uint64_t agent_place(const struct session *s, const struct maps *maps, uint64_t length)
{
	uint64_t low, high, at;

	code_range(s, &low, &high);
	at = place_near(maps, low, high, s->t->arch->patch.reach, length);
	return at ? at : place_near(maps, low, low, UINT64_MAX, length);
}

/* The kernel has chosen the address of the block; if that overlaps the place for the agent, chooses
 * another one. */
static int move_agent(struct session *s)
{
	struct ss_journal *j = s->journal;
	const struct maps *maps;
	int ret;

	if (j->session_addr >= j->agent_addr + j->agent_length ||
	    j->session_addr + j->session_length <= j->agent_addr)
		return 0;
	ret = target_maps(s->t, &maps);
	if (ret)
		return ret;
	j->agent_addr = agent_place(s, maps, j->agent_length);
	j->gate_addr = j->agent_addr + s->blob.mapped_length;
	return j->agent_addr ? 0 : -ENOMEM;
}

static int open_block(struct session *s, struct remote *r, const struct layout *layout,
		      const struct session_options *o, uint64_t agent)
{
	struct target *t = s->t;
	uint64_t name = remote_string(r, SS_NAME),
		 args[6] = {name, MFD_CLOEXEC | MFD_ALLOW_SEALING}, addr;
	int err, closed;
	long fd, ret;

	if (!name)
		return -EFAULT;
	err = remote_syscall(r, t->arch->nr.memfd_create, args, &fd);
	if (err || fd < 0)
		return err ? err : (int)fd;
	fault_point("open-memfd");
	err = map_here(s, fd, layout->length);
	if (!err)
		err = fill_block(s, &layout->control, o, agent);
	if (!err && layout->prefault)
		err = madvise(s->block, layout->length, MADV_POPULATE_WRITE) ? -errno : 0;
	if (!err)
		err = map_there(r, layout->length, (int)fd, &addr);
	fault_point("open-mapped");
	if (!err) {
		s->journal->session_addr = addr;
		err = move_agent(s);
		journal_publish(s);
	}
	fault_point("open-block");
	memset(args, 0, sizeof(args));
	args[0] = (uint64_t)fd;
	closed = remote_syscall(r, t->arch->nr.close, args, &ret);
	return err ? err : closed ? closed : (int)ret;
}

/* Maps the agent's text and, after it, the gate and the accounts. */
static int open_agent(struct session *s, struct remote *r)
{
	struct ss_journal *j = s->journal;
	struct ss_gate gate = {.account_mask = s->layout.nslots - 1,
			       .session_addr = j->session_addr};
	uint64_t args[6] = {j->gate_addr, SS_GATE_BYTES, MADV_WIPEONFORK}, addr;
	long ret;
	int err;

	err = session_remote_map(r, j->agent_addr, s->blob.mapped_length, PROT_READ | PROT_EXEC,
				 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, &addr);
	fault_point("open-agent");
	if (!err)
		err = session_remote_map(
		    r, j->gate_addr, session_private_bytes(&s->layout), PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, &addr);
	fault_point("open-gate");
	if (err)
		return err;
	err = remote_syscall(r, s->t->arch->nr.madvise, args, &ret);
	if (err || ret < 0)
		return err ? err : (int)ret;
	err = leave_out_of_cores(r, j->gate_addr, session_private_bytes(&s->layout));
	if (err)
		return err;
	err = mem_write_text(&s->t->mem, j->agent_addr, s->blob.text, s->blob.text_length);
	fault_point("open-text");
	if (!err)
		err = mem_write(&s->t->mem, j->gate_addr, &gate, sizeof(gate));
	if (!err)
		journal_set_state(s, SS_PREPARED);
	fault_point("open-prepared");
	return err;
}

/* Return: 0 if nothing of the session is left in the target, or a negative errno. */
static int take_back(struct session *s, struct remote *r)
{
	int ret = 0;

	if (!s->block)
		return 0;
	if (s->journal)
		ret = session_unmap(r, s->journal);
	munmap(s->block, s->length);
	s->block = NULL;
	return ret;
}

static bool is_room(int error)
{
	return error == -EEXIST || error == -ENOMEM || error == -EAGAIN || error == -EMFILE;
}

static const char *why_not(int error)
{
	switch (error) {
	case -EAGAIN:
		return "RLIMIT_MEMLOCK (it has locked its memory with mlockall)";
	case -EMFILE:
		return "RLIMIT_NOFILE (it has no descriptor left)";
	case -EFBIG:
		return "memprof's own RLIMIT_FSIZE is less than a session";
	default:
		return strerror(-error);
	}
}

static int map_all(struct session *s, const struct session_options *o, struct layout *layout,
		   const struct maps *maps, struct mp_err *err)
{
	struct target *t = s->t;
	uint64_t private = session_private_bytes(&layout->control),
		 agent = agent_place(s, maps, s->blob.mapped_length + private);
	uint32_t agent_may = SS_MAY_ALL;
	struct remote r;
	int ret = 0, back = 0, ended;

	if (t->status.seccomp)
		ret = sandbox_ask(t, layout->length, agent, s->blob.mapped_length, private,
				  &agent_may, err);
	if (!ret)
		ret = remote_begin(&r, t, err);
	if (ret)
		return ret;
	layout->control.may_syscall = sandbox_agent_calls(t) ? agent_may : 0;
	ret = agent ? open_block(s, &r, layout, o, agent) : -ENOMEM;
	if (!ret)
		ret = open_agent(s, &r);
	if (!ret)
		steps_add(t->steps, "session block of %llu KiB at %#llx, agent at %#llx",
			  (unsigned long long)layout->length / 1024,
			  (unsigned long long)s->journal->session_addr,
			  (unsigned long long)s->journal->agent_addr);
	if (ret)
		back = take_back(s, &r);
	ended = remote_end(&r);
	/* A thread that missed the deadline runs now, so the calls to clean up found no stopped
	 * thread. */
	if (ret == -ETIMEDOUT || (ret == -ESRCH && r.carrier->state != THREAD_GONE))
		return mp_fail(err, MP_EXIT_NOT_RESTORED, -ETIMEDOUT,
			       "thread %d of process %d did not run in time (it is frozen, or the "
			       "machine is overloaded); no function was hooked; remove what is "
			       "left with: memprof detach -p %d",
			       r.carrier->tid, t->pid, t->pid);
	if (ret && back)
		return mp_fail(err, MP_EXIT_NOT_RESTORED, ret,
			       "cannot map the agent into process %d: %s; remove what is left "
			       "with: memprof detach -p %d",
			       t->pid, why_not(ret), t->pid);
	if (ret)
		return mp_fail(err, is_room(ret) ? MP_EXIT_NO_ROOM : MP_EXIT_FAILURE, ret,
			       "cannot map the agent into process %d: %s", t->pid, why_not(ret));
	return ended ? mp_fail(err, MP_EXIT_FAILURE, ended,
			       "cannot restore the registers of thread %d", r.carrier->tid)
		     : 0;
}

int session_map(struct session *s, const struct session_options *o, struct layout *layout,
		struct mp_err *err)
{
	struct target *t = s->t;
	struct ss_control *c = &layout->control;
	const struct maps *maps; /* read again now that no thread can change them */
	int ret;

	c->sample_interval = o->sample_interval;
	if (o->overhead_ppm)
		layout_budget(c, o->overhead_ppm);
	layout_rings(c, o->lossless, !o->no_thinning);
	thread_id_find(t, c);
	ret = target_maps(t, &maps);
	if (ret)
		return target_refused(t, ret, err);
	vec_for_each (&maps->list, m) {
		if (!strcmp(m->path, "[stack]")) {
			c->main_stack_low = m->start;
			c->main_stack_high = m->end;
		}
	}
	return map_all(s, o, layout, maps, err);
}
