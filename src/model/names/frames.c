/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "model/names/frames.h"

#include <stdio.h>
#include <string.h>
#include "formats/session.h"
#include "lib/path.h"
#include "model/model.h"
#include "model/names/names.h"
#include "unwind/symbols/symbols.h"

const struct mp_module *model_module(const struct model *m, uint64_t address)
{
	for (size_t i = m->facts.modules.n; i-- > 0;) {
		if (address >= m->facts.modules.at[i].start && address < m->facts.modules.at[i].end)
			return &m->facts.modules.at[i];
	}
	return NULL;
}

struct symbols *model_late_symbols(struct model *m)
{
	if (m->facts.has_finish)
		return NULL;
	if (!m->naming.symbols) {
		m->naming.symbols = symbols_new(NULL);
		vec_for_each (&m->facts.modules, mod) {
			if (m->naming.symbols)
				(void)symbols_add_module(m->naming.symbols, mod, NULL);
		}
	}
	return m->naming.symbols;
}

static void fill_frame(struct frame *f, const struct mp_symbol *s, const char *library,
		       uint64_t address, uint64_t bias)
{
	*f = (struct frame){.function = s->function ? s->function : "?",
			    .raw_function = s->raw_function,
			    .source = s->source,
			    .line = s->line,
			    .column = s->column,
			    .library = library,
			    .address = address,
			    .offset = address - bias,
			    .is_inline = s->is_inline};
}

const char *library_name(const char *path, const char *executable, const char *called)
{
	return *called && !strcmp(path, executable) ? called : path_base(path);
}

const char *model_library(const struct model *m, const struct mp_module *mod)
{
	if (!mod || !mod->path || !*mod->path)
		return NULL;
	return library_name(mod->path, m->info.executable, m->info.called);
}

uint32_t model_frames(struct model *m, uint64_t pc, struct frame *out, uint32_t max)
{
	uint64_t address = ss_pc_instruction(pc);
	const struct mp_module *mod = model_module(m, address);
	const char *library = model_library(m, mod);
	const struct mp_symbol *sym;
	struct mp_symbol found[64];
	uint32_t n = 0;
	char text[160];

	sym = names_find(m->naming.names, pc, &n);
	if (sym && n && sym[0].raw_function && !library)
		library = LIBRARY_JIT;
	if (!sym && model_late_symbols(m)) {
		n = symbols_find(m->naming.symbols, pc, found, 64);
		if (n && !names_add(m->naming.names, pc, found, n))
			sym = names_find(m->naming.names, pc, &n);
	}
	if (!sym) {
		/* Unknown: uses the module and the offset in it, stored like a symbol. */
		if (library)
			snprintf(text, sizeof(text), "%.120s+0x%llx", library,
				 (unsigned long long)(address - mod->bias));
		else
			snprintf(text, sizeof(text), "0x%llx", (unsigned long long)address);
		found[0] = (struct mp_symbol){.function = text};
		if (!names_add(m->naming.names, pc, found, 1))
			sym = names_find(m->naming.names, pc, &n);
	}
	if (!sym || !max) {
		*out = (struct frame){.function = "?", .address = address};
		return 1;
	}
	for (uint32_t i = 0; i < n && i < max; i++)
		fill_frame(&out[i], &sym[i], library, address, mod ? mod->bias : 0);
	return n < max ? n : max;
}

void naming_free(struct naming *n)
{
	names_free(n->names);
	symbols_free(n->symbols);
}
