/* An error's words line by line, with the places in them, so that an editor can be opened there. */
#ifndef SESSION_ERROR_LINES_H
#define SESSION_ERROR_LINES_H

#include "engine/base/err.h"
#include <stddef.h>

enum error_line_kind { ERROR_LINE_OTHER, ERROR_LINE_NOTE, ERROR_LINE_WARNING, ERROR_LINE_ERROR };

struct error_line {
    enum error_line_kind kind;
    const char *text; /* borrowed from the err, not terminated */
    size_t length;
    char file[256]; /* of this line, or of the message it belongs to; "": none is known */
    int line;       /* 0: none is known */
};

#define ERROR_LINES_MAX 256

/* A compiler's messages with all that belongs to each, those that are errors first; other errors as they are. The first
   line is about err->where. Returns how many; -1: no memory. */
int error_lines(const struct err *err, struct error_line out[ERROR_LINES_MAX]);

#endif
