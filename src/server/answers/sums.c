/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "server/answers/sums.h"

#include <errno.h>
#include "export/lists/contents_list.h"
#include "export/json.h"
#include "export/lists/sum_lists.h"
#include "export/lists/timeline.h"
#include "model/model.h"
#include "server/answers/ending.h"
#include "server/recordings.h"

static int write_sums(struct answer *a, enum sums_by by, struct mp_err *err)
{
	if (a->m->info.what == MP_PAGE_FAULTS)
		return mp_fail(err, MP_EXIT_USAGE, -EINVAL,
			       "%s: this is a recording of page faults; report has its sums",
			       a->call->endpoint->path);
	return answer_wrote(sum_lists_write(a->m, by, true, a->out), err);
}

int answer_libraries(struct answer *a, struct mp_err *err)
{
	return write_sums(a, SUMS_LIBRARY, err);
}

int answer_threads(struct answer *a, struct mp_err *err)
{
	return write_sums(a, SUMS_THREAD, err);
}

int answer_sizes(struct answer *a, struct mp_err *err)
{
	return write_sums(a, SUMS_SIZE, err);
}

static int write_members(struct answer *a, void (*members)(yajl_gen g, const struct model *m),
			 struct mp_err *err)
{
	yajl_gen g = json_begin(a->out, true);

	if (!g)
		return answer_wrote(-ENOMEM, err);
	yajl_gen_map_open(g);
	members(g, a->m);
	yajl_gen_map_close(g);
	yajl_gen_free(g);
	return answer_wrote(ferror(a->out) ? -EIO : 0, err);
}

int answer_samples(struct answer *a, struct mp_err *err)
{
	return write_members(a, timeline_samples, err);
}

int answer_marks(struct answer *a, struct mp_err *err)
{
	return write_members(a, timeline_markers, err);
}

int answer_losses(struct answer *a, struct mp_err *err)
{
	return answer_wrote(json_write_doubts(a->m, a->out), err);
}

int answer_info(struct answer *a, struct mp_err *err)
{
	struct contents c;
	int ret = contents_read(a->recordings->at.at[a->call->recording].path, &c, err);

	if (ret)
		return ret;
	ret = answer_wrote(contents_json(&c, a->out), err);
	contents_free(&c);
	return ret;
}
