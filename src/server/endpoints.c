/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "server/endpoint.h"

#include "server/answers/index.h"

const char *const order_words[] = {"asc", "dsc", NULL};

const struct endpoint endpoints[] = {
    {"", TYPE_TEXT, READ_NONE, false, false, NULL, index_write},
    {"openapi.json", TYPE_JSON, READ_NONE, false, false, NULL, openapi_write},
    {0},
};
