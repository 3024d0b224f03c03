/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "server/endpoint.h"

const char *const order_words[] = {"asc", "dsc", NULL};

const struct endpoint endpoints[] = {
    {0},
};
