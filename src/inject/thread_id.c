/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "inject/thread_id.h"

#define BELOW 4096 /* bytes below the thread pointer that are searched for struct pthread */

/* x86-64: glibc (nptl/descr.h), musl (pthread_impl.h), older and newer. */
static const int32_t known[] = {0x2d0, 0x30, 0x38};

static bool right_for_all(struct target *t, int32_t offset)
{
	size_t asked = 0;

	vec_for_each (&t->threads, it) {
		struct proc_status st;
		uint32_t value;
		uint64_t tp;

		if (thread_get_regs(t, *it))
			continue;
		tp = thread_get_tp(t, *it);
		if (!tp || proc_status_read(t->pid, (*it)->tid, &st))
			continue;
		asked++;
		if (mem_read(&t->mem, tp + (uint64_t)(int64_t)offset, &value, sizeof(value)) ||
		    value != (uint32_t)st.ns_pid)
			return false;
	}
	return asked;
}

static uint64_t word_at(struct target *t, uint64_t at)
{
	uint8_t word[sizeof(uint64_t)];

	return mem_read(&t->mem, at, word, t->arch->word_size) ? 0 : arch_word(t->arch, word);
}

/* Is the word at @at the thread id in a struct pthread?  In glibc it follows the links of the list
 * of all threads; in musl the structure begins four words before it with its own address. */
static bool is_thread_id(struct target *t, uint64_t at)
{
	uint64_t word = t->arch->word_size, links = at - 2 * word, next = word_at(t, links);

	return (next && word_at(t, next + word) == links) ||
	       word_at(t, at - 4 * word) == at - 4 * word;
}

/* For architectures where the thread pointer is at the end of struct pthread, whose size differs
 * between releases. */
static int32_t search(struct target *t, struct thread *th)
{
	uint64_t tp = thread_get_tp(t, th), end = tp - t->arch->tls.bias;

	for (uint64_t at = end - t->arch->word_size; tp && end - at < BELOW;
	     at -= t->arch->word_size) {
		int32_t offset = (int32_t)(at - tp);

		if (right_for_all(t, offset) && is_thread_id(t, at))
			return offset;
	}
	return 0;
}

void thread_id_find(struct target *t, struct ss_control *c)
{
	int32_t offset = 0;

	if (t->arch->tls.above) {
		for (size_t i = 0; i < t->threads.n && !offset; i++) {
			if (!thread_get_regs(t, t->threads.at[i]))
				offset = search(t, t->threads.at[i]);
		}
	} else {
		for (size_t k = 0; k < sizeof(known) / sizeof(known[0]) && !offset; k++)
			offset = right_for_all(t, known[k]) ? known[k] : 0;
	}
	c->tid_offset = offset ? offset : -(int32_t)t->arch->tls.bias;
	c->tid_known = offset != 0;
}
