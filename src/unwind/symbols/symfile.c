/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Reads symbol tables through libdwfl, which finds separate debug files by build id and debug link
 * and reads .gnu_debugdata, and DWARF through libdw (DWARF 5, sections 3.1, 3.3 and 3.5).
 *
 * Units and functions are found by tables of their address ranges, which are built on first use,
 * instead of dwfl_module_addrdie() and dwarf_getscopes().  The former needs .debug_aranges, which
 * clang and rustc do not write.  The latter skips functions inside namespaces, and continues from
 * an inlined function to the scopes of its definition instead of its caller's.
 */
#include "unwind/symbols/symfile.h"

#include <dwarf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "lib/intern.h"
#include "lib/vec.h"
#include "unwind/elf_arch.h"
#include "unwind/symbols/debug_file.h"
#include "unwind/symbols/pc_ranges.h"

#define MAX_DEPTH 200 /* of scopes; limits recursion in malicious files */

/* A unit with code: @die has its functions, @skeleton its lines.  They differ if the functions are
 * in a separate file (-gsplit-dwarf). */
struct unit {
	Dwarf_Die skeleton, die;
	bool opened;
	struct pc_ranges functions; /* values: indices of function[] */
	VEC(Dwarf_Die) function;
};

/* A variable in the debug information; @function has offset 0 if it is not a function's. */
struct declared {
	Dwarf_Addr addr;
	bool tls;
	Dwarf_Die die, function;
};

struct symfile {
	Dwfl *dwfl;
	Dwfl_Module *module;
	bool opened;
	Dwarf_Addr bias; /* address in the file - address in its debug information */
	struct pc_ranges units;
	VEC(struct unit) unit;
	struct intern *joined; /* paths with the compiler's folder; NULL: none yet */
	VEC(char *) paths;     /* [id in joined - 1] */
	bool declared_read;
	VEC(struct declared) declared; /* sorted by address */
};

struct symfile *symfile_open(const Dwfl_Callbacks *callbacks, const char *name, const char *path,
			     int fd)
{
	struct symfile *f = calloc(1, sizeof(*f));

	if (!f)
		return NULL;
	f->dwfl = dwfl_begin(callbacks);
	if (f->dwfl) {
		dwfl_report_begin(f->dwfl);
		f->module = dwfl_report_elf(f->dwfl, name, path, fd, 0, true);
		dwfl_report_end(f->dwfl, NULL, NULL);
	}
	if (f->module)
		return f;
	symfile_free(f);
	return NULL;
}

void symfile_free(struct symfile *f)
{
	if (!f)
		return;
	vec_for_each (&f->unit, u) {
		pc_ranges_free(&u->functions);
		vec_free(&u->function);
	}
	vec_free(&f->unit);
	vec_free(&f->declared);
	pc_ranges_free(&f->units);
	intern_free(f->joined);
	vec_for_each (&f->paths, path)
		free(*path);
	vec_free(&f->paths);
	if (f->dwfl)
		dwfl_end(f->dwfl);
	free(f);
}

void symfile_ask(struct symfile *f, struct debuginfod *servers)
{
	void **data; /* passed to debug_file_find() */

	dwfl_module_info(f->module, &data, NULL, NULL, NULL, NULL, NULL, NULL);
	*data = servers;
}

/* Adds the ranges of @die with @value.  Code that the linker dropped has ranges that are empty or
 * start at address 0. */
static int add_ranges(struct pc_ranges *r, Dwarf_Die *die, uint32_t value)
{
	Dwarf_Addr base, start, end;
	ptrdiff_t at = 0;
	int ret = 0;

	while (!ret && (at = dwarf_ranges(die, at, &base, &start, &end)) > 0) {
		if (start && start < end)
			ret = pc_ranges_add(r, start, end, value);
	}
	return ret;
}

/* ------------------------------------------------------------------ units -- */

static int add_unit(struct symfile *f, Dwarf_Die *die)
{
	struct unit u = {.skeleton = *die};
	size_t before = f->units.list.n;
	int ret = add_ranges(&f->units, die, (uint32_t)f->unit.n);

	return ret || f->units.list.n == before ? ret : vec_push(&f->unit, u);
}

static void open_units(struct symfile *f)
{
	Dwarf *dwarf = dwfl_module_getdwarf(f->module, &f->bias);
	Dwarf_CU *cu = NULL, *next;
	uint8_t type;
	Dwarf_Die die;

	f->opened = true;
	while (dwarf && !dwarf_get_units(dwarf, cu, &next, NULL, &type, &die, NULL)) {
		cu = next;
		if ((type == DW_UT_compile || type == DW_UT_skeleton) && add_unit(f, &die))
			break;
	}
	pc_ranges_sort(&f->units);
}

/* ------------------------------------------------------------------ functions -- */

static bool holds_functions(int tag)
{
	return tag == DW_TAG_namespace || tag == DW_TAG_module || tag == DW_TAG_class_type ||
	       tag == DW_TAG_structure_type || tag == DW_TAG_union_type ||
	       tag == DW_TAG_interface_type || tag == DW_TAG_enumeration_type ||
	       tag == DW_TAG_subprogram || tag == DW_TAG_lexical_block;
}

/* Return: false at the last sibling, or if a damaged file would lead back. */
static bool next_sibling(Dwarf_Die *die)
{
	Dwarf_Off before = dwarf_dieoffset(die);
	Dwarf_Die next;

	if (dwarf_siblingof(die, &next) || dwarf_dieoffset(&next) <= before)
		return false;
	*die = next;
	return true;
}

static int add_functions(struct unit *u, Dwarf_Die *parent, int depth)
{
	Dwarf_Die die;

	if (depth == MAX_DEPTH || dwarf_child(parent, &die))
		return 0;
	do {
		int tag = dwarf_tag(&die);
		size_t before = u->functions.list.n;

		if (tag == DW_TAG_subprogram) {
			if (add_ranges(&u->functions, &die, (uint32_t)u->function.n) ||
			    (u->functions.list.n != before && vec_push(&u->function, die)))
				return -1;
		}
		if (holds_functions(tag) && add_functions(u, &die, depth + 1))
			return -1;
	} while (next_sibling(&die));
	return 0;
}

static void open_unit(const struct symfile *f, struct unit *u)
{
	Dwarf_Die split;
	uint8_t type;

	u->opened = true;
	u->die = u->skeleton;
	if (!dwarf_cu_info(u->skeleton.cu, NULL, &type, NULL, NULL, NULL, NULL, NULL) &&
	    type == DW_UT_skeleton && debug_file_may_split(f->module, &u->skeleton) &&
	    !dwarf_cu_info(u->skeleton.cu, NULL, NULL, NULL, &split, NULL, NULL, NULL) &&
	    split.addr)
		u->die = split;
	(void)add_functions(u, &u->die, 0);
	pc_ranges_sort(&u->functions);
}

static struct unit *find_unit(struct symfile *f, Dwarf_Addr addr)
{
	const struct pc_range *r;

	if (!f->opened)
		open_units(f);
	r = pc_ranges_find(&f->units, addr - f->bias);
	if (!r)
		return NULL;
	if (!f->unit.at[r->value].opened)
		open_unit(f, &f->unit.at[r->value]);
	return &f->unit.at[r->value];
}

/* ------------------------------------------------------------------ scopes -- */

static bool has_ranges(Dwarf_Die *die)
{
	return dwarf_hasattr(die, DW_AT_low_pc) || dwarf_hasattr(die, DW_AT_ranges);
}

/* Appends the inlined calls at @addr below @parent to @chain, outermost first.  Return: the new
 * number of entries, at most @max. */
static uint32_t add_inlined(Dwarf_Die *parent, Dwarf_Addr addr, Dwarf_Die *chain, uint32_t n,
			    uint32_t max, int depth)
{
	Dwarf_Die die;

	if (n == max || depth == MAX_DEPTH || dwarf_child(parent, &die))
		return n;
	do {
		int tag = dwarf_tag(&die);
		bool block = tag == DW_TAG_lexical_block || tag == DW_TAG_try_block ||
			     tag == DW_TAG_catch_block;
		uint32_t deeper;

		if (tag == DW_TAG_inlined_subroutine && dwarf_haspc(&die, addr) > 0) {
			chain[n] = die;
			return add_inlined(&die, addr, chain, n + 1, max, depth + 1);
		}
		if (!block || (has_ranges(&die) && dwarf_haspc(&die, addr) <= 0))
			continue;
		deeper = add_inlined(&die, addr, chain, n, max, depth + 1);
		if (deeper != n)
			return deeper;
	} while (next_sibling(&die));
	return n;
}

static const char *linkage_name(Dwarf_Die *die)
{
	Dwarf_Attribute attr;
	const char *n;

	n = dwarf_formstring(dwarf_attr_integrate(die, DW_AT_linkage_name, &attr));
	return n ? n : dwarf_formstring(dwarf_attr_integrate(die, DW_AT_MIPS_linkage_name, &attr));
}

static const char *die_name(Dwarf_Die *die)
{
	const char *n = linkage_name(die);

	return n ? n : dwarf_diename(die);
}

static bool die_number(Dwarf_Die *die, unsigned int at, uint32_t *value)
{
	Dwarf_Attribute attr;
	Dwarf_Word v;

	if (dwarf_formudata(dwarf_attr(die, at, &attr), &v))
		return false;
	*value = (uint32_t)v;
	return true;
}

/* Return: @text, kept once and owned by @f, or NULL when out of memory; @text is freed. */
static const char *keep(struct symfile *f, char *text)
{
	uint32_t id;
	bool fresh;

	if (!f->joined)
		f->joined = intern_new();
	if (!f->joined || vec_push(&f->paths, text)) {
		free(text);
		return NULL;
	}
	id = intern_text(f->joined, text, &fresh);
	if (id && fresh)
		return text;
	f->paths.n--;
	free(text);
	return id ? f->paths.at[id - 1] : NULL;
}

/* Return: the path of a source, in the folder in which the compiler ran if it is relative. */
static const char *whole_path(struct symfile *f, const struct unit *u, const char *source)
{
	Dwarf_Die cu = u->skeleton;
	Dwarf_Attribute attr;
	const char *folder, *kept;
	char *text;

	if (!source || *source == '/')
		return source;
	folder = dwarf_formstring(dwarf_attr(&cu, DW_AT_comp_dir, &attr));
	if (!folder || *folder != '/')
		return source;
	while (source[0] == '.' && source[1] == '/')
		source += 2;
	if (asprintf(&text, "%s/%s", folder, source) < 0)
		return source;
	kept = keep(f, text);
	return kept ? kept : source;
}

/* Sets the source position of @caller to the call site of the inlined @die. */
static void call_site(struct symfile *f, const struct unit *u, Dwarf_Die *die,
		      struct symfile_frame *caller)
{
	Dwarf_Die cu = u->die;
	Dwarf_Files *files;
	uint32_t i;
	size_t n;

	caller->source = NULL;
	caller->line = caller->column = 0;
	if (die_number(die, DW_AT_call_file, &i) && !dwarf_getsrcfiles(&cu, &files, &n) && i < n)
		caller->source = whole_path(f, u, dwarf_filesrc(files, i, NULL, NULL));
	(void)die_number(die, DW_AT_call_line, &caller->line);
	(void)die_number(die, DW_AT_call_column, &caller->column);
}

static void line_of(struct symfile *f, const struct unit *u, Dwarf_Addr addr,
		    struct symfile_frame *out)
{
	Dwarf_Die cu = u->skeleton;
	Dwarf_Line *line = dwarf_getsrc_die(&cu, addr);
	int number = 0, column = 0;

	if (!line)
		return;
	out->source = whole_path(f, u, dwarf_linesrc(line, NULL, NULL));
	if (!dwarf_lineno(line, &number))
		out->line = (uint32_t)number;
	if (!dwarf_linecol(line, &column))
		out->column = (uint32_t)column;
}

static bool is_mapping_symbol(const struct arch *arch, const char *name)
{
	return arch && arch->mapping_symbols && name[0] == '$' && name[1] &&
	       strchr(arch->mapping_symbols, name[1]) && (!name[2] || name[2] == '.');
}

/* Code without functions, such as the PLT, has mapping symbols only.
 * The symbol of a Thumb function is one byte after its start. */
static const char *symbol_at(const struct symfile *f, Dwarf_Addr addr)
{
	Dwarf_Addr bias;
	const struct arch *arch = elf_arch(dwfl_module_getelf(f->module, &bias));
	const char *name = dwfl_module_addrname(f->module, arch ? addr | arch->code_bits : addr);

	return name && !is_mapping_symbol(arch, name) ? name : NULL;
}

/* Compilers omit the linkage name of local functions; that of a C function is its plain name. */
static const char *function_name(const struct symfile *f, Dwarf_Die *function, Dwarf_Addr addr)
{
	const char *name = function ? linkage_name(function) : NULL,
		   *plain = function ? dwarf_diename(function) : NULL, *symbol;

	if (name)
		return name;
	symbol = symbol_at(f, addr);
	return plain && (!symbol || symbol[0] != '_') ? plain : symbol;
}

uint32_t symfile_find(struct symfile *f, uint64_t addr, struct symfile_frame *out, uint32_t max)
{
	struct unit *u = max ? find_unit(f, addr) : NULL;
	const struct pc_range *r = u ? pc_ranges_find(&u->functions, addr - f->bias) : NULL;
	Dwarf_Die *function = r ? &u->function.at[r->value] : NULL, chain[MAX_DEPTH];
	uint32_t n = 0;

	if (!max)
		return 0;
	out[0] = (struct symfile_frame){0};
	if (u)
		line_of(f, u, addr - f->bias, &out[0]);
	if (function)
		n = add_inlined(function, addr - f->bias, chain, 0,
				max <= MAX_DEPTH ? max - 1 : MAX_DEPTH, 0);
	for (uint32_t i = 0; i < n; i++) {
		Dwarf_Die *die = &chain[n - 1 - i];

		out[i].name = die_name(die);
		out[i].is_inline = true;
		out[i + 1] = (struct symfile_frame){0};
		call_site(f, u, die, &out[i + 1]);
	}
	out[n].name = function_name(f, function, addr);
	return out[n].name || n ? n + 1 : 0;
}

/* ------------------------------------------------------------------ variables -- */

int symfile_objects(struct symfile *f, symfile_object_fn *fn, void *ctx)
{
	int n = dwfl_module_getsymtab(f->module), ret = 0;

	for (int i = 1; i < n && !ret; i++) {
		GElf_Word section;
		GElf_Addr addr;
		GElf_Sym sym;
		const char *name =
		    dwfl_module_getsym_info(f->module, i, &sym, &addr, &section, NULL, NULL);
		int type = name ? GELF_ST_TYPE(sym.st_info) : STT_NOTYPE;

		if (!name || !*name || !sym.st_size || section == SHN_UNDEF)
			continue;
		if (type == STT_OBJECT || type == STT_TLS)
			ret = fn(ctx, name, type == STT_TLS ? sym.st_value : addr, sym.st_size,
				 type == STT_TLS);
	}
	return ret;
}

/* Is the variable at a fixed address (DW_OP_addr, DW_OP_addrx), or in thread-local storage (a
 * constant, then DW_OP_form_tls_address or its GNU form; DWARF 5, 2.5.1.3)? */
static bool fixed_place(Dwarf_Die *die, struct declared *v)
{
	Dwarf_Attribute attr, indirect;
	Dwarf_Op *op;
	size_t n;

	if (dwarf_getlocation(dwarf_attr(die, DW_AT_location, &attr), &op, &n) || !n)
		return false;
	v->tls = n == 2 &&
		 (op[1].atom == DW_OP_form_tls_address || op[1].atom == DW_OP_GNU_push_tls_address);
	if (v->tls) {
		v->addr = op[0].number;
		return op[0].atom == DW_OP_const4u || op[0].atom == DW_OP_const8u ||
		       op[0].atom == DW_OP_constu;
	}
	v->addr = op[0].number;
	if (n == 1 && op[0].atom == DW_OP_addr)
		return true;
	return n == 1 && op[0].atom == DW_OP_addrx &&
	       !dwarf_getlocation_attr(&attr, &op[0], &indirect) &&
	       !dwarf_formaddr(&indirect, &v->addr);
}

static int add_declared(struct symfile *f, Dwarf_Die *parent, const Dwarf_Die *function, int depth)
{
	Dwarf_Die die;

	if (depth == MAX_DEPTH || dwarf_child(parent, &die))
		return 0;
	do {
		struct declared v = {.die = die, .function = *function};
		int tag = dwarf_tag(&die);

		if (tag == DW_TAG_variable && fixed_place(&die, &v) && vec_push(&f->declared, v))
			return -1;
		if (holds_functions(tag) &&
		    add_declared(f, &die, tag == DW_TAG_subprogram ? &die : function, depth + 1))
			return -1;
	} while (next_sibling(&die));
	return 0;
}

static int by_place(const void *a, const void *b)
{
	const struct declared *x = a, *y = b;

	if (x->tls != y->tls)
		return x->tls ? 1 : -1;
	return x->addr < y->addr ? -1 : x->addr > y->addr;
}

static void read_declared(struct symfile *f)
{
	const Dwarf_Die none = {0};
	Dwarf *dwarf = dwfl_module_getdwarf(f->module, &f->bias);
	Dwarf_CU *cu = NULL, *next;
	uint8_t type;
	Dwarf_Die die;

	f->declared_read = true;
	while (dwarf && !dwarf_get_units(dwarf, cu, &next, NULL, &type, &die, NULL)) {
		cu = next;
		if (type == DW_UT_compile && add_declared(f, &die, &none, 0))
			break;
	}
	vec_sort(&f->declared, by_place);
}

/* The source position of @die, or of the declaration that it completes. */
static void declared_at(Dwarf_Die *die, struct symfile_variable *out)
{
	Dwarf_Attribute attr;
	Dwarf_Word line = 0;

	out->source = dwarf_decl_file(die);
	if (!dwarf_formudata(dwarf_attr_integrate(die, DW_AT_decl_line, &attr), &line))
		out->line = (uint32_t)line;
}

bool symfile_variable(struct symfile *f, uint64_t addr, bool tls, struct symfile_variable *out)
{
	struct declared key = {.tls = tls}, *v;

	if (!f->declared_read)
		read_declared(f);
	key.addr = tls ? addr : addr - f->bias;
	v = vec_search(&f->declared, &key, by_place);
	if (!v)
		return false;
	*out = (struct symfile_variable){.name = dwarf_diename(&v->die)};
	declared_at(&v->die, out);
	if (v->function.addr)
		out->function = dwarf_diename(&v->function);
	return true;
}

/* ------------------------------------------------------------------ local variables -- */

/* Is the expression of attribute @at of @die one operation from @first to @last? */
static bool one_operation(Dwarf_Die *die, unsigned int at, uint8_t first, uint8_t last,
			  Dwarf_Op **op)
{
	Dwarf_Attribute attr;
	Dwarf_Block block;
	size_t n;

	/* Location lists have other forms. */
	return dwarf_attr(die, at, &attr) && !dwarf_formblock(&attr, &block) && block.length &&
	       block.data[0] >= first && block.data[0] <= last &&
	       !dwarf_getlocation(&attr, op, &n) && n == 1;
}

/* Recursion is bounded by MAX_DEPTH. */
static int add_locals(Dwarf_Die *parent, Dwarf_Addr addr, int base, symfile_local_fn *fn, void *ctx,
		      int depth)
{
	Dwarf_Die die;
	Dwarf_Op *op;
	int ret = 0;

	if (depth == MAX_DEPTH || dwarf_child(parent, &die))
		return 0;
	do {
		const int tag = dwarf_tag(&die);

		if ((tag == DW_TAG_variable || tag == DW_TAG_formal_parameter) &&
		    one_operation(&die, DW_AT_location, DW_OP_fbreg, DW_OP_fbreg, &op))
			ret = fn(ctx, &die, base, (int64_t)op->number);
		else if ((tag == DW_TAG_lexical_block || tag == DW_TAG_inlined_subroutine) &&
			 dwarf_haspc(&die, addr) > 0)
			ret = add_locals(&die, addr, base, fn, ctx, depth + 1);
	} while (!ret && next_sibling(&die));
	return ret;
}

int symfile_locals(struct symfile *f, uint64_t addr, symfile_local_fn *fn, void *ctx)
{
	struct unit *u = find_unit(f, addr);
	const struct pc_range *r = u ? pc_ranges_find(&u->functions, addr - f->bias) : NULL;
	Dwarf_Die *function = r ? &u->function.at[r->value] : NULL;
	Dwarf_Op *op;

	int base = SYMFILE_CFA;

	if (!function)
		return 0;
	/* GCC has the canonical frame address, clang the register that points to the frame. */
	if (one_operation(function, DW_AT_frame_base, DW_OP_reg0, DW_OP_reg31, &op))
		base = op->atom - DW_OP_reg0;
	else if (!one_operation(function, DW_AT_frame_base, DW_OP_call_frame_cfa,
				DW_OP_call_frame_cfa, &op))
		return 0;
	return add_locals(function, addr - f->bias, base, fn, ctx, 0);
}

Dwarf *symfile_dwarf(struct symfile *f, Dwarf_Addr *bias)
{
	return dwfl_module_getdwarf(f->module, bias);
}

bool symfile_may_split(struct symfile *f, Dwarf_Die *unit)
{
	return debug_file_may_split(f->module, unit);
}
