/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "server/answers/quick.h"

#include <errno.h>
#include <stdio.h>
#include "export/json.h"
#include "model/model.h"
#include "model/sums/quick.h"
#include "server/answers/ending.h"
#include "server/recordings.h"

int answer_quick(struct answer *a, struct mp_err *err)
{
	struct model m;
	int ret = quick_load(a->recordings->at.at[a->call->recording].path, &m, err);
	bool faults = !ret && m.info.what == MP_PAGE_FAULTS;

	if (ret && (ret != -ENOENT || *err->what))
		return ret;
	if (ret || faults)
		fputs("null", a->out);
	if (ret)
		return 0;
	ret = faults ? 0 : answer_wrote(json_write_quick(&m, a->out), err);
	model_free(&m);
	return ret;
}
