// A header of the user's: a probe that stands in it is found here.
#pragma once
#define ASC_ROW_AT(ch, kv_tile, row, col, ...) ASC_RECORD(ch, kv_tile, i, 1, row, (col) + i, __VA_ARGS__)
